/**
 * Purges a repository: of a deleted one everything, of a living one what no ref reaches now. There is no way back.
 *
 * Invariants: a purge is in the log before the first byte is removed, and remove-purged.ts removes the bytes. It is
 * recorded as well if the account has lost the place of the bytes: then they stay with their owner. Of a
 * living repository it removes no object that a ref reaches: the objects are chosen by the compaction that drops what
 * nobody reaches (drop-unreached.ts), with a window of nothing. It does not trust a state that calls the layers clean:
 * those of older versions may hold what no ref ever reached. Such a rewriting leaves a copy for an hour, so it waits
 * while purges have left too much; one that is only to let go what was replaced before never does.
 */
import { lostPlace } from '../../account/buckets/binding.ts';
import { accounts } from '../../account/evolve.ts';
import { type Plans, waitingStorageQuota } from '../../account/plans.ts';
import { refuse } from '../../kernel/decider.ts';
import type { LogPosition } from '../../kernel/envelope.ts';
import type { FairSlots } from '../../kernel/fair-slots.ts';
import { type EventId, plusMs, type RepositoryId, type Timestamp } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Pause } from '../../ports/clock.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LayerCounts, LayerDrops } from '../../ports/layer-drops.ts';
import type { PolicyMarks } from '../../ports/policy-marks.ts';
import type { WaitingStorageReader } from '../../ports/usage.ts';
import { repositories } from '../../repository/evolve.ts';
import type { OpenRepository } from '../../repository/state.ts';
import { isDroppable } from '../../repository/unreached.ts';
import { removedThrough, secondsUntilRemoved } from '../../usage/waiting-storage.ts';
import {
  type DropAsked,
  type Dropped,
  type DroppingContext,
  type DroppingOutcome,
  dropAsFor,
  droppedBytes,
  tipsOf,
} from '../compacting/drop-unreached.ts';
import type { ManifestOf } from '../manifests/write-manifest.ts';
import { committedObjects } from '../reading/committed-objects.ts';
import { type DeletionsContext, findDeletion } from '../repositories/deletions.ts';
import { letLayersGo, replacedLayers } from '../repositories/expire-layers-early.ts';
import {
  type FoundRepository,
  findRepositoryById,
  type RepositoryCommandOrigin,
} from '../repositories/repositories.ts';

/** A repository is rewritten by purges once in this time. */
export const PURGE_REWRITING_INTERVAL_MS = 60 * 60_000;
/** How long a purge waits until webhooks were notified of a push that was made just now. */
export const PURGE_NOTIFICATION_WAIT_MS = 5_000;

export interface PurgeContext extends DeletionsContext, Omit<DroppingContext, 'objects'> {
  readonly readModels: DeletionsContext['readModels'] & WaitingStorageReader;
  readonly plans: Plans;
  readonly marks: Pick<PolicyMarks, 'read'>;
  readonly drops: LayerDrops & LayerCounts;
  readonly failpoint: Failpoint;
  readonly pause: Pause;
  /** Writes the manifest of the repository, unless its store fails. */
  readonly manifestNow: (of: ManifestOf) => Promise<void>;
  /** Bounds the purges of living repositories. */
  readonly purgeSlots: FairSlots;
}

export interface Purge {
  /** The last event of the purge; null if there was nothing to remove, and of a dry run. */
  readonly event: EventId | null;
  readonly freedBytes: number;
  /** What stays in a bucket of the account's owner, because the account has lost its place. Absent: nothing does. */
  readonly leftWithOwnerBytes?: number;
}

/** Webhooks save how far they are once a second. */
const NOTIFICATION_POLL_MS = 200;

type Refused = { readonly refused: Refusal };

/** Returns what a purge would free now. */
export async function planPurge(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  signal: AbortSignal,
): Promise<Purge | Refused> {
  const found = await findPurged(context, origin, id);
  if ('refused' in found) return found;
  const { state } = await context.entities.reload(repositories, id);
  const replaced = await replacedLayers(context, id, state);
  const waiting = sizeOf(replaced.flatMap(({ layers }) => layers));
  if (state.status === 'closed') return purged(found, null, waiting + state.before.layersSizeBytes);
  const left = await whatIsLeft(context, origin, id, signal);
  if ('refused' in left) return left;
  const dropped = await inSlot(context, origin, signal, () => {
    const of = { account: origin.account, repository: id, ...left };
    return droppedBytes(withoutWindow(context), of, signal);
  });
  // Objects that are packed again may take more than before.
  return purged(found, null, Math.max(0, waiting + dropped));
}

export async function purgeRepository(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  signal: AbortSignal,
): Promise<Purge | Refused> {
  const found = await findPurged(context, origin, id);
  if ('refused' in found) return found;
  const before = await context.entities.reload(repositories, id);
  if (before.state.status === 'closed') return letGo(context, origin, found, { all: true, addedBytes: 0 });
  const dropped = await drop(context, origin, id, signal);
  return typeof dropped === 'object' ? dropped : letGo(context, origin, found, { all: false, addedBytes: dropped });
}

interface FoundPurged {
  readonly id: RepositoryId;
  /** Whether the account has lost the place of the bytes, which only happens to a deleted repository. */
  readonly isLost: boolean;
}

function purged({ isLost }: FoundPurged, event: EventId | null, sizeBytes: number): Purge {
  return isLost ? { event, freedBytes: 0, leftWithOwnerBytes: sizeBytes } : { event, freedBytes: sizeBytes };
}

function withoutWindow(context: PurgeContext): DroppingContext {
  return { ...context, objects: context.drops, retentionMs: 0 };
}

/** Returns the bytes of the layers that took the place of others, or a refusal. */
async function drop(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  signal: AbortSignal,
): Promise<number | Refused> {
  const found = await whatIsLeft(context, origin, id, signal);
  if ('refused' in found) return found;
  const known = await openState(context, origin, id);
  const outcome = await dropWhenNotified(context, origin, { id, ...found }, signal);
  if (typeof outcome === 'object') return outcome;
  if (outcome === 'waits') return refuse({ code: 'webhooks-not-notified' });
  if (outcome === 'lost') return refuse({ code: 'refs-moved-meanwhile' });
  if (outcome === 'nothing') return 0;
  const now = await openState(context, origin, id);
  if (known === null || now === null) return 0;
  const layers = new Set([...known.layers].map((layer) => layer.id));
  return sizeOf([...now.layers].flatMap((layer) => (layers.has(layer.id) ? [] : { size_bytes: layer.sizeBytes })));
}

/** Whether layers that the state calls clean hold what no ref reaches. */
type Found = Pick<Dropped, 'holdsMoreIn'>;

/** Counts layers that the state calls clean. Refused if they hold more and are too large to be written again. */
async function whatIsLeft(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  signal: AbortSignal,
): Promise<Found | Refused> {
  const repository = await findRepositoryById(context, origin.account, id);
  if (repository === null || !repository.entity.state.clean) return {};
  const { state } = repository.entity;
  const objects = committedObjects(repository, repository.entity);
  const holdsMore = await inSlot(context, origin, signal, () => context.drops.holdMore(objects, tipsOf(state), signal));
  if (!holdsMore) return {};
  return isDroppable(state) ? { holdsMoreIn: state.shrinkEpoch } : refuse({ code: 'repository-too-large-to-purge' });
}

/** Waits for the webhooks of a push that was made just now, and holds no slot for that time. */
async function dropWhenNotified(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  { id, ...found }: { readonly id: RepositoryId } & Found,
  signal: AbortSignal,
): Promise<DroppingOutcome | Refused> {
  const { account, cause, guarding = async () => ({ guards: [] }) } = origin;
  const refusal: DropAsked['refusal'] = (repository, seen) => rewritingRefusal(context, repository, seen);
  const of = { account, repository: id, by: { cause, guarding, refusal }, ...found };
  for (let waitedMs = 0; ; waitedMs += NOTIFICATION_POLL_MS) {
    const outcome = await inSlot(context, origin, signal, () => dropAsFor(withoutWindow(context), of, signal));
    if (outcome !== 'waits' || waitedMs >= PURGE_NOTIFICATION_WAIT_MS) return outcome;
    await context.pause(NOTIFICATION_POLL_MS, signal);
  }
}

/** Why the repository may not be rewritten now: what it replaces stays in storage for an hour, beside its place. */
async function rewritingRefusal(
  context: PurgeContext,
  { id, accountId, account, owned }: FoundRepository,
  seen: LogPosition,
): Promise<Refusal | null> {
  const { clock, plans, readModels } = context;
  // What is in a bucket of its owner takes no platform storage.
  const quota = owned.storageBucketId === null ? waitingStorageQuota(plans[account.plan]) : null;
  const removed = await removedThrough(context);
  const purges = await readModels.purgesOf({ account: accountId, repository: id, removed, quota, seen });
  const now = clock.now();
  const { rewrittenAt, letGoUntil } = purges;
  const againAt = rewrittenAt === null ? now : plusMs(rewrittenAt, PURGE_REWRITING_INTERVAL_MS);
  if (againAt > now) return { code: 'repository-rewritten-lately', waitSeconds: secondsUntil(againAt, now) };
  if (letGoUntil === null || quota === null) return null;
  return { code: 'waiting-storage-full', quota, waitSeconds: secondsUntilRemoved(letGoUntil, now) };
}

function secondsUntil(at: Timestamp, now: Timestamp): number {
  return Math.ceil((Date.parse(at) - Date.parse(now)) / 1_000);
}

async function openState(
  context: PurgeContext,
  { account }: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<OpenRepository | null> {
  return (await findRepositoryById(context, account, id))?.entity.state ?? null;
}

async function letGo(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  found: FoundPurged,
  { all, addedBytes }: { readonly all: boolean; readonly addedBytes: number },
): Promise<Purge | Refused> {
  const gone = await letLayersGo(context, origin, { id: found.id, all, reason: 'purge' });
  if ('refused' in gone) return gone;
  // By it, a log that is restored to before the purge tells that what the purge removed is not lost.
  if (!found.isLost) await context.manifestNow({ account: origin.account, repository: found.id });
  return purged(found, gone.event, Math.max(0, gone.sizeBytes - addedBytes));
}

function sizeOf(layers: readonly { readonly size_bytes: number }[]): number {
  return layers.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
}

/** Refused for what the account never had, and for a living repository that is too large. */
async function findPurged(
  context: PurgeContext,
  { account }: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<FoundPurged | Refused> {
  const living = await findRepositoryById(context, account, id);
  if (living !== null) {
    const { state } = living.entity;
    if (state.clean || isDroppable(state)) return { id, isLost: false };
    return refuse({ code: 'repository-too-large-to-purge' });
  }
  const deleted = await findDeletion(context, account, id);
  if (deleted === null) return refuse({ code: 'repository-not-found' });
  const { state } = await context.entities.get(accounts, account);
  return { id, isLost: lostPlace(state, deleted.place) !== null };
}

async function inSlot<Result>(
  { purgeSlots }: PurgeContext,
  { account }: RepositoryCommandOrigin,
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  const release = await purgeSlots.acquire(account, signal);
  try {
    return await work();
  } finally {
    release();
  }
}
