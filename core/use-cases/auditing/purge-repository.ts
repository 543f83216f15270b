/**
 * Purges a repository: of a deleted one everything, of a living one what no ref reaches now. There is no way back.
 *
 * Must stay true: a purge is in the log before the first byte is removed, and remove-purged.ts removes the bytes. Of a
 * living repository it removes no object that a ref reaches: the objects are chosen by the compaction that drops what
 * nobody reaches (drop-unreached.ts), with a window of nothing.
 */
import { readEvent, refuse } from '../../kernel/decider.ts';
import { streamName } from '../../kernel/envelope.ts';
import type { FairSlots } from '../../kernel/fair-slots.ts';
import type { EventId, RepositoryId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LayerDrops } from '../../ports/layer-drops.ts';
import type { ReplacedLayers } from '../../repository/commands.ts';
import { decideRepository } from '../../repository/decide.ts';
import { type LayersExpired, type RepositoryEvent, repositoryEventKinds } from '../../repository/events.ts';
import { repositories } from '../../repository/evolve.ts';
import type { OpenRepository, Repository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { findRepositoryById, type RepositoryCommandOrigin } from '../accounts/repositories.ts';
import { droppedBytes, type DroppingContext, dropUnreached } from '../compacting/drop-unreached.ts';
import { isDroppable } from '../../repository/unreached.ts';
import { type DeletedRepositoriesContext, findDeleted } from './deleted-repositories.ts';

export interface PurgeContext extends DeletedRepositoriesContext, Omit<DroppingContext, 'objects'> {
  readonly drops: LayerDrops;
  readonly failpoint: Failpoint;
  /** Bounds the purges of living repositories. */
  readonly purgeSlots: FairSlots;
}

export interface Purge {
  /** The last event of the purge; null if there was nothing to remove, and of a dry run. */
  readonly event: EventId | null;
  readonly freedBytes: number;
}

type Refused = { readonly refused: Refusal };

/** Returns what a purge would free now. */
export async function planPurge(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  signal: AbortSignal,
): Promise<Purge | Refused> {
  const kind = await kindOf(context, origin, id);
  if (typeof kind === 'object') return kind;
  const { state } = await context.entities.reload(repositories, id);
  const replaced = await replacedLayers(context, id, state);
  const waiting = sizeOf(replaced.flatMap(({ layers }) => layers));
  if (state.status === 'closed') return { event: null, freedBytes: waiting + state.before.layersSizeBytes };
  const dropped = await inSlot(context, origin, signal, () => {
    const of = { account: origin.account, repository: id };
    return droppedBytes(withoutWindow(context), of, signal);
  });
  // Objects that are packed anew may take more than before.
  return { event: null, freedBytes: Math.max(0, waiting + dropped) };
}

export async function purgeRepository(
  context: PurgeContext,
  origin: RepositoryCommandOrigin,
  id: RepositoryId,
  signal: AbortSignal,
): Promise<Purge | Refused> {
  const kind = await kindOf(context, origin, id);
  if (typeof kind === 'object') return kind;
  const before = await context.entities.reload(repositories, id);
  if (before.state.status === 'closed') return expire(context, origin, { id, all: true, addedBytes: 0 });
  const dropped = await inSlot(context, origin, signal, () => drop(context, origin, id, signal));
  return typeof dropped === 'object' ? dropped : expire(context, origin, { id, all: false, addedBytes: dropped });
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
  const { account, cause, guarding = async () => ({ guards: [] }) } = origin;
  const of = { account, repository: id, by: { cause, guarding } };
  const known = await openState(context, origin, id);
  const outcome = await dropUnreached(withoutWindow(context), of, signal);
  // It waits for the webhooks of a push that was made just now.
  if (outcome === 'lost' || outcome === 'waits') return refuse({ code: 'refs-moved-meanwhile' });
  if (outcome === 'nothing') return 0;
  const now = await openState(context, origin, id);
  if (known === null || now === null) return 0;
  const layers = new Set([...known.layers].map((layer) => layer.id));
  return sizeOf([...now.layers].flatMap((layer) => (layers.has(layer.id) ? [] : { size_bytes: layer.sizeBytes })));
}

async function openState(
  context: PurgeContext,
  { account }: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<OpenRepository | null> {
  return (await findRepositoryById(context, account, id))?.entity.state ?? null;
}

/** Lets layers go: those that compactions replaced, and of a deleted repository all. */
async function expire(
  context: PurgeContext,
  { account, cause, guarding }: RepositoryCommandOrigin,
  { id, all, addedBytes }: { readonly id: RepositoryId; readonly all: boolean; readonly addedBytes: number },
): Promise<Purge | Refused> {
  const about = { account, cause, ...(guarding === undefined ? {} : { guarding }) };
  let event: EventId | null = null;
  let freedBytes = -addedBytes;
  for (;;) {
    const entity = await context.entities.reload(repositories, id);
    const replaced = await replacedLayers(context, id, entity.state);
    let purged: readonly LayersExpired[] = [];
    const executed = await execute(context, repositories, id, about, (state) => {
      const decision = decideRepository(state, { type: 'PurgeLayers', all, replaced });
      purged = 'refused' in decision ? [] : decision.events.filter((one) => one.type === 'LayersExpired');
      return decision;
    });
    if ('refused' in executed) return executed;
    if (purged.length === 0) return { event, freedBytes: Math.max(0, freedBytes) };
    event = executed.entity.lastEventId;
    freedBytes += sizeOf(purged.flatMap(({ data }) => data.layers));
    await context.failpoint('purge-appended');
  }
}

function sizeOf(layers: readonly { readonly size_bytes: number }[]): number {
  return layers.reduce((sum, { size_bytes }) => sum + size_bytes, 0);
}

/** Refused for what the account never had, and for a living repository that is too large. */
async function kindOf(
  context: PurgeContext,
  { account }: RepositoryCommandOrigin,
  id: RepositoryId,
): Promise<'living' | 'deleted' | Refused> {
  const found = await findRepositoryById(context, account, id);
  if (found === null) {
    return (await findDeleted(context, account, id)) === null ? refuse({ code: 'repository-not-found' }) : 'deleted';
  }
  const { state } = found.entity;
  return state.clean || isDroppable(state) ? 'living' : refuse({ code: 'repository-too-large-to-purge' });
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

const PAGE_EVENTS_MAX = 100;

/** Returns what compactions replaced and no event has let go yet, in the order of the stream. */
async function replacedLayers(
  { events }: Pick<Context, 'events'>,
  id: RepositoryId,
  state: Repository,
): Promise<readonly ReplacedLayers[]> {
  const { expiredThrough } = state.status === 'closed' ? state.before : state;
  const stream: Entity<Repository>['stream'] = streamName('repository', id);
  const replaced: ReplacedLayers[] = [];
  for (let from = expiredThrough + 1; ; ) {
    const page = await events.readStream(stream, { direction: 'forwards', from, limit: PAGE_EVENTS_MAX });
    for (const recorded of page) {
      const event = readEvent<RepositoryEvent>(repositoryEventKinds, recorded);
      if (event.type !== 'LayersCompacted') continue;
      replaced.push({ compactedAt: recorded.revision, layers: event.data.removed });
    }
    if (page.length < PAGE_EVENTS_MAX) return replaced;
    from += page.length;
  }
}
