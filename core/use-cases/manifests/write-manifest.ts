/**
 * Writes the manifest of a repository into the store of its layers, and removes those that nobody needs any more
 * (docs/bucket-layout.md).
 *
 * Invariants:
 * - a manifest is stored after its refs, and both after every layer that it names, so that whoever finds it finds all;
 * - of two writers that race, the newer revision is the newest manifest, in whatever order they store;
 * - only manifests at revisions that the log has stay: others are of a log that was restored to an earlier state;
 * - a manifest is removed before its refs. The newest is never removed before a newer one is stored, but one of this
 *   revision with an earlier name is, right before it is stored again: who dies in between does it once more;
 * - the last manifest of a deleted repository whose layers were let go names none of them, and stays for the retention.
 *   By it, whoever restored an older log knows that these layers are not lost.
 */
import { lostPlace } from '../../account/buckets/binding.ts';
import { accounts } from '../../account/evolve.ts';
import type { OwnedRepository } from '../../account/repositories/state.ts';
import { decodeUtf8Lossy, encodeUtf8 } from '../../git/utf8.ts';
import type { Digest } from '../../kernel/digest.ts';
import { type AccountId, type EventId, plusMs, type RepositoryId, type Timestamp } from '../../kernel/ids.ts';
import { readAgain } from '../../kernel/read-again.ts';
import { singleChunk } from '../../kernel/single-chunk.ts';
import type { NextTurn } from '../../kernel/turns.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import { type LayerStore, LayerStoreError } from '../../ports/layer-store.ts';
import type { LayerPlace, LayerStores } from '../../ports/layer-stores.ts';
import type { Log } from '../../ports/log.ts';
import { repositories } from '../../repository/evolve.ts';
import type { LayerKey, StoredLayer } from '../../repository/layer.ts';
import {
  MANIFEST_REFS_HEADER,
  type ManifestRefs,
  manifestEventLine,
  manifestFilesIn,
  manifestKey,
  manifestNameLine,
  manifestPrefix,
  manifestRefLines,
  manifestRefsFile,
  manifestRefsKey,
  manifestsLeaveAt,
  manifestText,
} from '../../repository/manifest.ts';
import { type RefRun, refRuns } from '../../repository/ref-runs.ts';
import { FALLBACK_DEFAULT_BRANCH, type OpenRepository, type Repository } from '../../repository/state.ts';
import type { Entity } from '../../runtime/entity.ts';
import type { Context } from '../../runtime/execute.ts';
import type { PastEntities } from '../../runtime/past-entities.ts';
import { removedRepository } from '../repositories/deletions.ts';
import { placeOf } from '../repositories/repositories.ts';

/**
 * Objects beside the manifests of one repository that are looked at, at a time: a year of days has 730. Internal:
 * further objects stay for a later look.
 */
export const MANIFEST_FILES_LISTED_MAX = 10_000;
/**
 * Refs that no manifest names are of one that is being written, or of a writer that died: after this time they leave.
 * Internal: it is the pace of background work.
 */
export const MANIFEST_REFS_KEPT_MS = 60 * 60_000;

/**
 * The last manifest of a deleted repository stays this long at least, whatever the retention. Internal: nobody waits
 * for its end.
 */
const LAST_MANIFEST_KEPT_MS_MIN = 24 * 60 * 60_000;

export interface ManifestContext extends Context {
  readonly past: Pick<PastEntities, 'accountAt'>;
  readonly layers: Pick<LayerStores, 'of' | 'platform'>;
  readonly digest: Pick<Digest, 'startSha256'>;
  readonly failpoint: Failpoint;
  readonly log: Log;
  /** How long the last manifest of a day stays. */
  readonly retentionMs: number;
}

export interface ManifestOf {
  readonly account: AccountId;
  readonly repository: RepositoryId;
}

/**
 * `kept`: the repository was deleted, or never pushed to, so its manifests stay as they are; those of one whose layers
 * were let go leave with the retention. `erased`: its account was erased, and they were removed.
 */
export type ManifestOutcome =
  | { readonly outcome: 'kept' | 'erased' }
  | {
      readonly outcome: 'written';
      /** When a manifest that is kept for the retention is to leave; null if there is none. */
      readonly nextAt: Timestamp | null;
    };

type ManifestFiles = ReturnType<typeof manifestFilesIn>;

/** Rejects with a LayerStoreError if the store cannot be read or written. Nobody sees half of a manifest then. */
export async function writeManifest(context: ManifestContext, of: ManifestOf): Promise<ManifestOutcome> {
  const { repository } = of;
  await context.entities.barrier();
  const before = await findRepository(context, of);
  if (before === null) return (await removeOfErased(context, of)) ? { outcome: 'erased' } : { outcome: 'kept' };
  const store = context.layers.of(before.place, 'maintenance');
  const files = await listFiles(store, repository);
  // Read after the listing, so that the log has each revision in it by now, if it is of this log.
  await context.entities.barrier();
  const found = await findRepository(context, of);
  if (found === null) return { outcome: 'kept' };
  const { leavesAt } = found;
  if (leavesAt !== null && leavesAt <= context.clock.now()) {
    await remove(context, store, files);
    return { outcome: 'kept' };
  }
  const written = await storeManifest(context, store, found, files);
  const nextAt = await removeOld(context, store, [...files, ...written], found);
  return {
    outcome: 'written',
    nextAt: leavesAt !== null && (nextAt === null || leavesAt < nextAt) ? leavesAt : nextAt,
  };
}

/** Does what `writeManifest` does, beside a request or a sweep that a store which fails must not end. */
export async function writeManifestNow(context: ManifestContext, of: ManifestOf): Promise<void> {
  try {
    await writeManifest(context, of);
  } catch (err) {
    if (!(err instanceof LayerStoreError)) throw err;
    // It is written again before the first layer leaves the store.
    context.log.warn({ err, ...of }, 'A manifest could not be written');
  }
}

/**
 * Removes the manifests of revisions before this one, for a caller that will remove layers which they name. An open
 * repository has a newer manifest then.
 */
export async function removeManifestsBefore(
  context: ManifestContext,
  store: LayerStore,
  { account, repository, revision }: ManifestOf & { readonly revision: number },
): Promise<void> {
  // By the newest manifest, a log that is restored to before this removal tells that the layers are not lost.
  await writeManifest(context, { account, repository });
  const files = await listFiles(store, repository);
  const old = files.filter((file) => file.revision < revision);
  await remove(context, store, old);
}

/**
 * Manifests hold names of refs. Returns false if the account is not erased. Of one that is, only the platform's store
 * can be reached: the credentials of its buckets were in the vault.
 */
async function removeOfErased(context: ManifestContext, { account, repository }: ManifestOf): Promise<boolean> {
  const { state: owner } = await context.entities.get(accounts, account);
  if (owner.status !== 'erased') return false;
  const store = context.layers.platform;
  await remove(context, store, await listFiles(store, repository));
  return true;
}

/** Returns where a repository's manifests are stored; null if this node does not know the repository. */
export async function manifestPlace(context: ManifestContext, of: ManifestOf): Promise<LayerPlace | null> {
  return (await findRepository(context, of))?.place ?? null;
}

/** The owner of a bucket may put more objects there than a repository has: the rest is seen another time. */
async function listFiles(store: LayerStore, repository: RepositoryId): Promise<ManifestFiles> {
  const listed: StoredLayer[] = [];
  for await (const stored of store.list(manifestPrefix(repository))) {
    listed.push(stored);
    if (listed.length === MANIFEST_FILES_LISTED_MAX) break;
  }
  return manifestFilesIn(listed);
}

interface Found {
  /** `<username>/<name>`. */
  readonly name: string;
  readonly owned: OwnedRepository;
  readonly place: LayerPlace;
  readonly state: OpenRepository;
  readonly refs: readonly RefRun[];
  readonly revision: number;
  /** The id and time of the event at this revision. */
  readonly eventId: EventId;
  readonly asOf: Timestamp;
  /** When all manifests leave; null of a repository that is not deleted. */
  readonly leavesAt: Timestamp | null;
}

/**
 * Returns null for a repository that was never pushed to, and for a deleted one that can come back. Finds those of a
 * closed account as well: its owner may come back.
 */
async function findRepository(context: ManifestContext, of: ManifestOf): Promise<Found | null> {
  const { account, repository } = of;
  const { state: owner } = await context.entities.get(accounts, account);
  if (owner.status !== 'open' && owner.status !== 'closed') return null;
  const entity = await context.entities.get(repositories, repository);
  const { state, revision, lastEventId: eventId, lastAt: asOf } = entity;
  if (revision === 'none' || eventId === null || asOf === null) return null;
  if (state.status === 'closed') {
    const owned = await findEnded(context, of, entity);
    if (owned === null) return null;
    const place = placeOf({ accountId: account, owned });
    const leavesAt = plusMs(asOf, Math.max(context.retentionMs, LAST_MANIFEST_KEPT_MS_MIN));
    // Refs would name objects of layers that are gone.
    const ended = { owned, place, state: state.before, refs: [], revision, eventId, asOf, leavesAt };
    return { name: `${owner.username}/${owned.name}`, ...ended };
  }
  const owned = owner.repositories.get(repository);
  if (owned === undefined) return null;
  const place = placeOf({ accountId: account, owned });
  const found = { owned, place, state, refs: refRuns(state.refs), revision, eventId, asOf, leavesAt: null };
  return { name: `${owner.username}/${owned.name}`, ...found };
}

/** Returns null while a deleted repository can come back, and if its account has lost the place of its layers. */
async function findEnded(
  context: ManifestContext,
  { account, repository }: ManifestOf,
  { state, revision }: Entity<Repository>,
): Promise<OwnedRepository | null> {
  if (state.status !== 'closed' || !state.expired || revision === 'none') return null;
  const removed = await removedRepository(context, { account, repository, revision });
  const { state: owner } = await context.entities.get(accounts, account);
  return removed === null || lostPlace(owner, removed.place) !== null ? null : removed.owned;
}

/** Returns what it stored: nothing if this manifest was there. */
async function storeManifest(
  context: ManifestContext,
  store: LayerStore,
  found: Found,
  files: ManifestFiles,
): Promise<ManifestFiles> {
  const { owned, state, revision } = found;
  const repository = owned.id;
  const key = manifestKey(repository, revision);
  const isThere = files.some((file) => file.key === key);
  if (isThere && (await holdsLines(store, key, [manifestEventLine(found.eventId), manifestNameLine(found.name)]))) {
    return [];
  }
  const refs = await storeRefs(context, store, found);
  await context.failpoint('manifest-refs-stored');
  // It is of another log, in which this revision was another event, or has an earlier name.
  if (isThere) await store.delete(key);
  const text = encodeUtf8(
    manifestText({
      repository,
      name: found.name,
      revision,
      eventId: found.eventId,
      asOf: found.asOf,
      head: `refs/heads/${state.defaultBranch ?? owned.initialDefaultBranch ?? FALLBACK_DEFAULT_BRANCH}`,
      refs,
      layers: [...state.layers],
    }),
  );
  await store.put(key, singleChunk(text), text.length);
  await context.failpoint('manifest-stored');
  const storedAt = context.clock.now();
  return [{ key, sizeBytes: text.length, storedAt, repository, revision, kind: 'manifest' }];
}

/** The lines are among the first bytes. Whoever owns the bucket may have written anything there. */
const LINES_WITHIN_BYTES = 1_024;

async function holdsLines(store: LayerStore, key: LayerKey, lines: readonly string[]): Promise<boolean> {
  const start = new Uint8Array(LINES_WITHIN_BYTES);
  let length = 0;
  for await (const part of await store.get(key, { start: 0, end: start.length })) {
    const room = part.subarray(0, start.length - length);
    start.set(room, length);
    length += room.length;
    if (length === start.length) break;
  }
  // The cut may be in the middle of a character.
  const text = decodeUtf8Lossy(start.subarray(0, length));
  return lines.every((line) => text.includes(line));
}

/** Never holds the text of all refs: it makes each part again for each reading, the digest's and the store's. */
async function storeRefs(context: ManifestContext, store: LayerStore, found: Found): Promise<ManifestRefs> {
  const { nextTurn } = context.clock;
  const { refs: runs } = found;
  const count = runs.reduce((sum, run) => sum + run.length, 0);
  const digest = context.digest.startSha256();
  let sizeBytes = 0;
  const parts = readAgain(() => refsParts(runs, nextTurn));
  for await (const part of parts) {
    digest.add(part);
    sizeBytes += part.length;
  }
  const sha256 = digest.hex();
  const file = manifestRefsFile(found.revision, sha256);
  const key = manifestRefsKey(found.owned.id, { file });
  await store.put(key, parts, sizeBytes);
  return { file, count, sizeBytes, sha256 };
}

async function* refsParts(runs: readonly RefRun[], nextTurn: NextTurn): AsyncGenerator<Uint8Array> {
  yield encodeUtf8(MANIFEST_REFS_HEADER);
  for (const run of runs) {
    yield encodeUtf8(run.map((ref) => manifestRefLines(ref.name, ref)).join(''));
    await nextTurn();
  }
}

/** Removes what nobody needs any more. Returns when the next manifest is to leave; null if only a newer one ends it. */
async function removeOld(
  context: ManifestContext,
  store: LayerStore,
  files: ManifestFiles,
  { revision, owned }: Found,
): Promise<Timestamp | null> {
  const now = context.clock.now();
  const ofOtherLog = files.filter((file) => file.revision > revision);
  if (ofOtherLog.length > 0) {
    const fields = { repository: owned.id, revision, removed: ofOtherLog.map(({ key }) => key) };
    context.log.warn(fields, 'The store held manifests of revisions that the log does not have');
  }
  const leaveAt = manifestsLeaveAt(
    files.filter((file) => file.kind === 'manifest' && file.revision <= revision),
    context.retentionMs,
  );
  const oldest = plusMs(now, -MANIFEST_REFS_KEPT_MS);
  const leaves = (file: ManifestFiles[number]): boolean => {
    const at = leaveAt.get(file.revision);
    // Refs without a manifest may be of one that is being written.
    return at === undefined ? file.storedAt < oldest : at !== null && at <= now;
  };
  const known = files.filter((file) => file.revision <= revision);
  await remove(context, store, [...ofOtherLog, ...known.filter(leaves)]);
  let nextAt: Timestamp | null = null;
  for (const at of leaveAt.values()) if (at !== null && at > now && (nextAt === null || at < nextAt)) nextAt = at;
  return nextAt;
}

/** Removes manifests before refs. */
async function remove({ failpoint }: ManifestContext, store: LayerStore, files: ManifestFiles): Promise<void> {
  for (const kind of ['manifest', 'refs'] as const) {
    for (const file of files) {
      if (file.kind !== kind) continue;
      await store.delete(file.key);
      await failpoint('manifest-removed');
    }
  }
}
