/**
 * A received pack in files of its own: checked, and invisible to every reader until it is installed.
 *
 * Invariants: a quarantine ends by install or discard and leaves no file behind; until then it holds the lease on
 * the layers it was checked against.
 */
import { join } from 'node:path';
import type { PackRefusal } from '../../../core/git/pack-refusal.ts';
import type { FairSlots } from '../../../core/kernel/fair-slots.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import { canonicalJson } from '../../../core/kernel/json.ts';
import type { CommittedObjects, LayerContent, Quarantine } from '../../../core/ports/object-database.ts';
import type { ObjectHistory } from '../../../core/ports/object-history.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import type { WholePacks } from '../answers/whole-packs.ts';
import { viewOf } from '../cache/cache-folder.ts';
import type { CacheLease, LayerCache } from '../cache/layer-cache.ts';
import { layerContent } from '../layers/layer-tar.ts';
import { compareMoves, type ObjectAccess } from '../packs/ancestry.ts';
import { createGitObjects } from '../packs/git-objects.ts';
import { readCommitSeconds, readTips } from '../packs/object-graph.ts';
import type { HashObject } from '../packs/object-hash.ts';
import {
  createObjectSource,
  type OpenPack,
  openFreshPack,
  openHeldPack,
  type PackFiles,
} from '../packs/object-source.ts';
import type { PackMemory } from '../packs/pack-file.ts';
import type { Git, ObjectView } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';
import type { IncomingBytes } from './incoming-bytes.ts';
import { type IndexedPack, quarantineView, recheckPack } from './index-pack.ts';
import { holdsLeftOver, type PushedTips, type SentObjects } from './left-over.ts';
import type { PushMemory } from './push-memory.ts';
import { packBaseIn, QuarantineFiles } from './quarantine-files.ts';
import { type TrimOptions, trimPack } from './trim-pack.ts';

export interface QuarantineContext {
  readonly git: Git;
  readonly cache: LayerCache;
  readonly memory: PackMemory;
  readonly wholePacks: Pick<WholePacks, 'received'>;
  readonly pushMemory: PushMemory;
  readonly incomingBytes: IncomingBytes;
  /** For the checks of small packs in process, by account. */
  readonly smallPacks: FairSlots;
  /** Null where small packs are checked by git as well. */
  readonly hash: HashObject | null;
  /** Reads the history of a view's objects. */
  readonly historyOf: (view: ObjectView) => ObjectHistory;
  readonly log: GitLog;
}

export interface ReceivedPack {
  /** The pack's checksum, hex. */
  readonly pack: string;
  readonly receivedBytes: number;
  readonly account: AccountId;
  /** Null for a pack without objects, which is not stored. */
  readonly stored: StoredPack | null;
}

export interface StoredPack {
  readonly pack: OpenPack;
  readonly files: QuarantineFiles;
  /** Null once the pack was written again, or checked again against other layers. */
  readonly sent: SentObjects | null;
}

/** Opens a pack that lies in these files, or that they are to hold. */
export async function openStored(
  { memory }: QuarantineContext,
  { pack: name, held }: Pick<IndexedPack, 'pack' | 'held'>,
  files: QuarantineFiles,
  sent: SentObjects | null,
): Promise<StoredPack> {
  if (held !== null) return { pack: await openHeldPack(memory, name, held, files.hold(name, held)), files, sent };
  const base = packBaseIn(await files.folder(), name);
  return { pack: await openFreshPack(memory, name, `${base}.pack`, `${base}.idx`), files, sent };
}

/** Takes over the lease and the files: install or discard ends both. */
export async function createQuarantine(
  context: QuarantineContext,
  received: ReceivedPack,
  leased: CacheLease,
): Promise<Quarantine> {
  const { git, cache, memory, historyOf, log } = context;
  const { receivedBytes, account } = received;
  let { pack, stored } = received;
  let lease = leased;
  let ended = false;
  const held = (): Held => ({ lease, stored, account });
  let objects = objectsOf(git, held());
  /** Tips that reach every object of the pack which the committed layers do not hold; null if none are known. */
  let wholeTips: readonly ObjectId[] | null = null;
  /** Returns true for the first caller only. */
  const claimEnd = () => {
    if (ended) return false;
    ended = true;
    return true;
  };
  const cleanUp = (moved: OpenPack | null) => removeFiles(context, { lease, stored, moved, tips: wholeTips });

  return {
    get pack() {
      return pack;
    },
    get objectCount() {
      return stored?.pack.index.objectCount ?? 0;
    },
    receivedBytes,
    leavesOver: async (tips, known, signal) => {
      const left = await leavesOver(context, held(), { tips, known, signal });
      wholeTips = left ? null : tips;
      return left;
    },
    keepReached: async (tips, known, signal) => {
      if (stored === null) return;
      const before = stored.files;
      const view = quarantineView(lease.folder, () => before.folder(), account);
      stored = await keptOf(context, { tips, known, signal, view });
      pack = stored?.pack.name ?? pack;
      objects = objectsOf(git, held());
      wholeTips = tips;
      await before.end();
    },
    tips: (ids) => checking(cache, lease, () => readTips(objects.source, ids)),
    commitSeconds: (ids) => checking(cache, lease, () => readCommitSeconds(objects.source, ids)),
    compareMoves: (moves, signal) => checking(cache, lease, () => compareMoves(git, objects, moves, signal)),
    diff: (from, to, bounded) => checkingAll(cache, lease, historyOf(objects.view).diff(from, to, bounded)),
    layer: (updates, description) => contentOf(memory, stored?.pack ?? null, updates, description),
    recheck: async (committed: CommittedObjects): Promise<PackRefusal | null> => {
      const next = await recheckedLease(context, committed, { stored, account });
      if ('refused' in next) return next;
      lease.release();
      lease = next;
      if (stored !== null) stored = { ...stored, sent: null };
      wholeTips = null;
      objects = objectsOf(git, held());
      return null;
    },
    install: async (layer: Layer) => {
      if (!claimEnd()) return;
      const cleaning = cleanUp(await moveIntoCache(context, { stored, lease, layer }));
      cleaning.catch((error: unknown) => log.warn({ layer: layer.id, error }, 'A quarantine could not be removed'));
    },
    discard: async () => {
      if (claimEnd()) await cleanUp(null);
    },
  };
}

async function leavesOver(
  { git, cache, pushMemory }: QuarantineContext,
  { lease, stored, account }: Held,
  pushed: PushedTips,
): Promise<boolean> {
  if (stored === null) return false;
  const { pack, sent, files } = stored;
  const view = quarantineView(lease.folder, () => files.folder(), account);
  const compared = { git, pushMemory, pack, sent, committed: lease.packs, view };
  return checking(cache, lease, () => holdsLeftOver(compared, pushed));
}

/** What a quarantine holds at a moment. */
interface Held {
  readonly lease: CacheLease;
  readonly stored: StoredPack | null;
  readonly account: AccountId;
}

interface Ended {
  readonly lease: CacheLease;
  readonly stored: StoredPack | null;
  /** The pack, if the cache has taken it. */
  readonly moved: OpenPack | null;
  /** What reaches every new object of the pack, if that is known. */
  readonly tips: readonly ObjectId[] | null;
}

async function removeFiles({ wholePacks }: QuarantineContext, ended: Ended): Promise<void> {
  const { lease, stored, moved, tips } = ended;
  // A pack that was checked against no layer refers to no other one.
  if (moved !== null && tips !== null && lease.packs.length === 0) wholePacks.received(lease.folder, moved, tips);
  lease.release();
  // What was in memory was moved from there, and its files stayed.
  await stored?.files.end(moved !== null && stored.files.held === null);
}

async function contentOf(
  { pages }: PackMemory,
  pack: OpenPack | null,
  updates: readonly string[],
  description: Parameters<Quarantine['layer']>[1],
): Promise<LayerContent> {
  if (pack === null) throw new TypeError('A pack of no objects makes no layer');
  return layerContent(pages, {
    pack: pack.name,
    packFile: pack.file.file,
    idxFile: pack.index.file,
    updates: updates.map((line) => `${line}\n`).join(''),
    description: `${canonicalJson(description)}\n`,
  });
}

/** Writes the part of a pack that the tips reach into a folder of its own; null if it is nothing. */
async function keptOf(context: QuarantineContext, wanted: Omit<TrimOptions, 'target'>): Promise<StoredPack | null> {
  const { incoming } = context.cache;
  const target = await incoming.take();
  let kept: StoredPack | null = null;
  try {
    const name = await trimPack(context.git, { ...wanted, target });
    const files = new QuarantineFiles(incoming, target);
    if (name !== null) kept = await openStored(context, { pack: name, held: null }, files, null);
    return kept;
  } finally {
    if (kept === null) await incoming.remove(target);
  }
}

/** Checks the pack in the folder, if there is one, against these layers; returns the lease on them unless it fails. */
async function recheckedLease(
  { git, cache, pushMemory }: QuarantineContext,
  committed: CommittedObjects,
  { stored, account }: Omit<Held, 'lease'>,
): Promise<CacheLease | PackRefusal> {
  const next = await cache.acquire(committed);
  let passed = false;
  try {
    let refusal: PackRefusal | null = null;
    if (stored !== null) {
      const { pack, files } = stored;
      const folder = await files.folder();
      refusal = await recheckPack(git, {
        packPath: `${packBaseIn(folder, pack.name)}.pack`,
        packBytes: pack.file.file.sizeBytes,
        committed: next.folder,
        scratch: join(folder, 'recheck'),
        account,
        admission: pushMemory.largest(pack.index.objectCount),
      });
    }
    passed = refusal === null;
    return refusal ?? next;
  } finally {
    if (!passed) next.release();
  }
}

/** When files of the cache were deleted this push fails, and the next one finds them again. */
export async function checking<Result>(
  cache: LayerCache,
  { folder }: CacheLease,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await cache.isLost(folder);
    throw error;
  }
}

async function* checkingAll<Item>(
  cache: LayerCache,
  { folder }: CacheLease,
  items: AsyncIterable<Item>,
): AsyncGenerator<Item> {
  try {
    yield* items;
  } catch (error) {
    await cache.isLost(folder);
    throw error;
  }
}

interface NewLayer {
  /** Null if the push stores no pack. */
  readonly stored: StoredPack | null;
  readonly lease: CacheLease;
  readonly layer: Layer;
}

/** Resolves with the pack when the cache has taken it, else with null. */
async function moveIntoCache(
  { cache, log }: QuarantineContext,
  { stored, lease, layer }: NewLayer,
): Promise<OpenPack | null> {
  if (stored === null) return null;
  const { pack, files } = stored;
  try {
    const from = files.held ?? filesOf(await files.folder(), pack);
    return (await cache.install(lease, layer, from, pack)) ? pack : null;
  } catch (error) {
    // The push is committed: the next reader fetches the layer from the store.
    log.warn({ layer: layer.id, error }, 'A new layer could not be moved into the cache');
    return null;
  }
}

/** The files that git wrote into a folder of incoming files. */
function filesOf(folder: string, { name, file, index }: OpenPack): PackFiles {
  const base = packBaseIn(folder, name);
  const sizes = { packBytes: file.file.sizeBytes, idxBytes: index.file.sizeBytes };
  return { packPath: `${base}.pack`, idxPath: `${base}.idx`, revPath: `${base}.rev`, ...sizes };
}

function objectsOf(git: Git, { lease, stored, account }: Held): ObjectAccess {
  const view =
    stored === null
      ? viewOf(lease.folder, account)
      : quarantineView(lease.folder, () => stored.files.folder(), account);
  const packs = stored === null ? lease.packs : [...lease.packs, stored.pack];
  return { source: createObjectSource(packs, createGitObjects(git, view)), view };
}
