/**
 * A received pack in a folder of its own: checked, and invisible to every reader until it is installed.
 *
 * Must stay true: a quarantine ends by install or discard and leaves no file behind; until then it holds the lease on
 * the layers it was checked against.
 */
import { join } from 'node:path';
import type { FairSlots } from '../../../core/kernel/fair-slots.ts';
import { canonicalJson } from '../../../core/kernel/json.ts';
import type { AccountId, ObjectId } from '../../../core/kernel/ids.ts';
import type {
  CommittedObjects,
  Layer,
  LayerContent,
  PackRefusal,
  Quarantine,
} from '../../../core/ports/object-database.ts';
import type { Git, ObjectView } from '../process/git-commands.ts';
import { createGitObjects } from '../packs/git-objects.ts';
import type { HashObject } from '../packs/object-hash.ts';
import { type IndexedPack, quarantineAlone, quarantineView, recheckPack } from './index-pack.ts';
import type { IncomingBytes } from './incoming-bytes.ts';
import type { PushMemory } from './push-memory.ts';
import { trimPack, type TrimOptions } from './trim-pack.ts';
import type { WholePacks } from '../cache/whole-packs.ts';
import type { CacheLease, LayerCache } from '../cache/layer-cache.ts';
import { layerContent } from '../cache/layer-tar.ts';
import type { GitLog } from '../process/log.ts';
import { compareMoves, type ObjectAccess } from '../packs/ancestry.ts';
import { readCommitSeconds, readTips } from '../packs/object-graph.ts';
import { createObjectSource, openFreshPack, type OpenPack } from '../packs/object-source.ts';
import type { PackMemory } from '../packs/pack-file.ts';

export interface QuarantineContext {
  readonly git: Git;
  readonly cache: LayerCache;
  readonly memory: PackMemory;
  readonly wholePacks: Pick<WholePacks, 'received' | 'arriving'>;
  readonly pushMemory: PushMemory;
  readonly incomingBytes: IncomingBytes;
  /** For the checks of small packs in process, by account. */
  readonly smallPacks: FairSlots;
  /** Null where small packs are checked by git as well. */
  readonly hash: HashObject | null;
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
  /** Holds `pack/pack-<hex>.{pack,idx}`, and `.rev` if it has a reverse index. */
  readonly folder: string;
  readonly hasReverseIndex: boolean;
}

/** Opens the pack and index that were written into a folder. */
export async function openStored(
  { memory }: QuarantineContext,
  { pack: name, written }: Pick<IndexedPack, 'pack' | 'written'>,
  folder: string,
): Promise<StoredPack> {
  const files = [packFileIn(folder, name, 'pack'), packFileIn(folder, name, 'idx')] as const;
  const pack = await openFreshPack(memory, name, ...files, written);
  return { pack, folder, hasReverseIndex: written === null };
}

function packFileIn(folder: string, name: string, extension: string): string {
  return join(folder, 'pack', `pack-${name}.${extension}`);
}

const NOT_STORED = { folder: null, pack: null, hasReverseIndex: false };

/** Takes over the lease and the folder: install or discard releases both. */
export async function createQuarantine(
  context: QuarantineContext,
  received: ReceivedPack,
  leased: CacheLease,
): Promise<Quarantine> {
  const { git, cache, memory, log } = context;
  const { receivedBytes, account } = received;
  let { pack } = received;
  let { folder, pack: ownPack, hasReverseIndex } = received.stored ?? NOT_STORED;
  const fileOf = (extension: string) => packFileIn(folder ?? '', pack, extension);
  let lease = leased;
  const objectsNow = () => objectsOf(git, { lease, ownPack, folder, account });
  let objects = objectsNow();
  let ended = false;
  /** The tips that the pack was last asked for: those that it was sent with. */
  let sentTips: readonly ObjectId[] = [];

  /** Returns true for the first caller only. */
  const claimEnd = () => {
    if (ended) return false;
    ended = true;
    return true;
  };
  const cleanUp = (moved: OpenPack | null) => removeFiles(context, { lease, folder, moved, tips: sentTips });

  return {
    get pack() {
      return pack;
    },
    get objectCount() {
      return ownPack?.index.objectCount ?? 0;
    },
    receivedBytes,
    keepReached: async (tips, known, signal) => {
      if (folder === null) return;
      const before = folder;
      const kept = await keptOf(context, { tips, known, signal, view: quarantineView(lease.folder, before, account) });
      pack = kept?.pack.name ?? pack;
      ({ folder, pack: ownPack, hasReverseIndex } = kept ?? NOT_STORED);
      objects = objectsNow();
      sentTips = tips;
      await cache.incoming.remove(before);
    },
    tips: (ids) => {
      sentTips = ids;
      countAlone(context, { lease, ownPack, folder, account }, ids);
      return checking(cache, lease, () => readTips(objects.source, ids));
    },
    commitSeconds: (ids) => checking(cache, lease, () => readCommitSeconds(objects.source, ids)),
    compareMoves: (moves, signal) => checking(cache, lease, () => compareMoves(git, objects, moves, signal)),
    layer: (updates, description) => contentOf(memory, ownPack, updates, description),
    recheck: async (committed: CommittedObjects): Promise<PackRefusal | null> => {
      const next = await recheckedLease(context, committed, { folder, ownPack, packFile: fileOf('pack'), account });
      if ('refused' in next) return next;
      lease.release();
      lease = next;
      objects = objectsNow();
      return null;
    },
    install: async (layer: Layer) => {
      if (!claimEnd()) return;
      const cleaning = cleanUp(await moveIntoCache(context, { ownPack, fileOf, hasReverseIndex, lease, layer }));
      cleaning.catch((error: unknown) => log.warn({ folder, error }, 'A quarantine could not be removed'));
    },
    discard: async () => {
      if (claimEnd()) await cleanUp(null);
    },
  };
}

/** Begins to count what the tips of a first pack reach, which refers to no other one. */
function countAlone(
  { wholePacks }: QuarantineContext,
  { lease, ownPack, folder, account }: Held,
  tips: readonly ObjectId[],
): void {
  if (ownPack === null || folder === null || lease.packs.length > 0) return;
  // Counts are known by repository, and one is made at a time.
  const view = { ...quarantineAlone(lease.folder, folder, account), key: lease.folder.repository };
  wholePacks.arriving(view, ownPack, tips);
}

/** What a quarantine holds at a moment. */
interface Held {
  readonly lease: CacheLease;
  readonly ownPack: OpenPack | null;
  readonly folder: string | null;
  readonly account: AccountId;
}

interface Ended {
  readonly lease: CacheLease;
  readonly folder: string | null;
  /** The pack, if its files were moved into the cache. */
  readonly moved: OpenPack | null;
  readonly tips: readonly ObjectId[];
}

async function removeFiles({ cache, wholePacks }: QuarantineContext, ended: Ended): Promise<void> {
  const { lease, folder, moved, tips } = ended;
  const release = () => lease.release();
  // A pack that was checked against no layer refers to no other one.
  if (moved !== null && lease.packs.length === 0) wholePacks.received(lease.folder, moved, tips, release);
  else release();
  if (folder === null) return;
  if (moved !== null) await cache.incoming.giveBack(folder);
  else await cache.incoming.remove(folder);
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
    if (name !== null) kept = await openStored(context, { pack: name, written: null }, target);
    return kept;
  } finally {
    if (kept === null) await incoming.remove(target);
  }
}

/** Checks the pack in the folder, if there is one, against these layers; returns the lease on them unless it fails. */
async function recheckedLease(
  { git, cache, pushMemory }: QuarantineContext,
  committed: CommittedObjects,
  { folder, ownPack, packFile, account }: Omit<Held, 'lease'> & { readonly packFile: string },
): Promise<CacheLease | PackRefusal> {
  const next = await cache.acquire(committed);
  let passed = false;
  try {
    const admission = pushMemory.largest(ownPack?.index.objectCount ?? 0);
    const packBytes = ownPack?.file.file.sizeBytes ?? 0;
    const rechecked = { packPath: packFile, packBytes, committed: next.folder, account, admission };
    const refusal = folder === null ? null : await recheckPack(git, { ...rechecked, scratch: join(folder, 'recheck') });
    passed = refusal === null;
    return refusal ?? next;
  } finally {
    if (!passed) next.release();
  }
}

/** When files of the cache were deleted this push fails, and the next one finds them again. */
async function checking<Result>(
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

interface NewLayer {
  /** Null if the push stores no pack. */
  readonly ownPack: OpenPack | null;
  /** The path of one of the pack's files. */
  readonly fileOf: (extension: string) => string;
  readonly hasReverseIndex: boolean;
  readonly lease: CacheLease;
  readonly layer: Layer;
}

/** Resolves with the pack when its files were moved into the cache, else with null. */
async function moveIntoCache({ cache, log }: QuarantineContext, newLayer: NewLayer): Promise<OpenPack | null> {
  const { ownPack, fileOf, hasReverseIndex, lease, layer } = newLayer;
  if (ownPack === null) return null;
  const files = {
    packPath: fileOf('pack'),
    idxPath: fileOf('idx'),
    ...(hasReverseIndex ? { revPath: fileOf('rev') } : {}),
    packBytes: ownPack.file.file.sizeBytes,
    idxBytes: ownPack.index.file.sizeBytes,
  };
  try {
    return (await cache.install(lease, layer, files, ownPack)) ? ownPack : null;
  } catch (error) {
    // The push is committed: the next reader fetches the layer from the store.
    log.warn({ layer: layer.id, error }, 'A new layer could not be moved into the cache');
    return null;
  }
}

function objectsOf(git: Git, { lease, ownPack, folder, account }: Held): ObjectAccess {
  const view: ObjectView =
    folder === null
      ? { key: account, variables: { GIT_DIR: lease.folder.path } }
      : quarantineView(lease.folder, folder, account);
  const packs = ownPack === null ? lease.packs : [...lease.packs, ownPack];
  return { source: createObjectSource(packs, createGitObjects(git, view)), view };
}
