/**
 * The object database on native git: wires the cache, the process runner, receiving and reading together.
 *
 * Invariants: everything under its directory may be deleted at any time; only one process uses a directory.
 */
import { join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { GIB, MIB } from '../../core/kernel/byte-units.ts';
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import { LAYERS_MAX, PUSH_MEMORY_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { CachedRepositories } from '../../core/ports/cached-repositories.ts';
import type { LayerCounts, LayerDrops } from '../../core/ports/layer-drops.ts';
import type { LayerMerges } from '../../core/ports/layer-merges.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { NewContents } from '../../core/ports/new-contents.ts';
import type { NewObjects } from '../../core/ports/new-objects.ts';
import type { CommittedObjects, ObjectDatabase, ObjectReader } from '../../core/ports/object-database.ts';
import { type AnswerCache, type AnswerFigures, createAnswerCache } from './answers/answer-cache.ts';
import { ViewLost } from './answers/upload-pack.ts';
import { createWholePacks, type WholePacks } from './answers/whole-packs.ts';
import { createArchiveContext } from './archive.ts';
import { createBitmaps } from './cache/bitmaps.ts';
import { removeFolder } from './cache/cache-folder.ts';
import { type CommitGraphs, createCommitGraphs } from './cache/commit-graphs.ts';
import { createLayerCache, type LayerCache, type LayerCacheOptions } from './cache/layer-cache.ts';
import { mergeSmallPacks } from './cache/pack-merging.ts';
import { makePrivateFolder } from './cache/private-folder.ts';
import { createViewFolders } from './cache/view-folders.ts';
import { createLayerCounts } from './compacting/count-layers.ts';
import { keepReached } from './compacting/keep-reached.ts';
import { mergeLayers } from './compacting/merge-layers.ts';
import { createObjectHistory, type HistoryContext } from './object-history.ts';
import { answerKeyStart, createObjectReader, type ReaderContext, repositoryOfAnswer } from './object-reader.ts';
import { createFilePages } from './packs/file-pages.ts';
import { createNewObjects } from './packs/new-objects.ts';
import { type HashObject, loadObjectHash } from './packs/object-hash.ts';
import { createObjectCache } from './packs/pack-file.ts';
import { createReachableSets } from './packs/reachable-sets.ts';
import { createReadTurns } from './packs/read-turns.ts';
import { createGit, type Git, type OwnLimits } from './process/git-commands.ts';
import type { ProcessLimits } from './process/helper-process.ts';
import type { GitLog } from './process/log.ts';
import { type MemoryGroup, makeMemoryGroup } from './process/memory-group.ts';
import { createProcessRunner, type ProcessRunner } from './process/process-runner.ts';
import { createReadingSlots } from './reading-slots.ts';
import { createIncomingBytes, type IncomingBounds } from './receiving/incoming-bytes.ts';
import { createNewContents } from './receiving/new-contents.ts';
import { createPushMemory, type PushCpu } from './receiving/push-memory.ts';
import type { QuarantineContext } from './receiving/quarantine.ts';
import { receivePack } from './receiving/receive-pack.ts';
import { createRefilledReader } from './refilled-reader.ts';

/**
 * Small packs that are checked in process at the same time, each in 2 MiB of memory: on a node, and of one account.
 * Internal: further packs wait.
 */
const SMALL_PACKS_AT_ONCE_MAX = 24;
const SMALL_PACKS_PER_ACCOUNT_MAX = 8;
/** Bytes of packs that are arriving at a node, or wait there to be checked: in all, and of one account. */
export const PUSHES_ARRIVING_BYTES_MAX = 16 * GIB;
export const PUSHES_ARRIVING_ACCOUNT_BYTES_MAX = 8 * GIB;
/** The last part of the bytes that may arrive, and how few an account may have arriving to take of it. */
export const PUSHES_ARRIVING_KEPT_BYTES = 4 * GIB;
export const PUSHES_ARRIVING_FEW_BYTES = 256 * MIB;
/**
 * Trees of more than a MiB that a node reads at the same time: in all, and of one repository. Each takes up to 100 MiB
 * of memory while it is inflated and searched. Internal: further reads wait.
 */
const LARGE_TREES_AT_ONCE_MAX = 2;
const LARGE_TREES_PER_REPOSITORY_MAX = 1;

export interface GitObjectDatabaseOptions {
  /** Used by this process only; created when missing. It should be on a fast local disk. */
  readonly directory: string;
  readonly layers: LayerStores;
  /** Absolute path of git; by default the first git on the PATH. */
  readonly gitPath?: string;
  /** Bytes of packs and indexes kept on disk. Only repositories in use can exceed it. */
  readonly cacheBytesMax: number;
  readonly log: GitLog;
  /** Whether a control group bounds the memory of all git processes, where the system lets this process make one. */
  readonly inMemoryGroup?: boolean;
  /** Limits of each git process; each replaces its default. */
  readonly limits?: Partial<ProcessLimits>;
  /** The same bounds for those that make archives. */
  readonly archiveLimits?: Partial<OwnLimits>;
  /** Git processes that run at the same time: in all, and for one account. */
  readonly processesMax?: number;
  readonly processesPerAccountMax?: number;
  /** How long one of them waits for a slot among those for slow readers. */
  readonly pacedWaitMs?: number;
  /**
   * Names the objects of small packs, which are then checked in process; by default es-git does. Null leaves all to
   * git.
   */
  readonly hash?: HashObject | null;
  /** Memory of all processes that check packs; by default `PUSH_MEMORY_BYTES_MAX`. */
  readonly pushMemoryBytesMax?: number;
  /** Processor time of each of them; by default those of `push-memory.ts`. */
  readonly pushCpu?: PushCpu;
  /** Memory for small packs until git needs their files. */
  readonly heldBytesMax?: number;
  /** Bytes of packs that may be arriving. */
  readonly incoming?: IncomingBounds;
  /** A cached repository with this many packs has its small ones merged in the background. */
  readonly packsMax?: number;
}

export interface GitObjectDatabase extends ObjectDatabase, LayerMerges, LayerDrops, LayerCounts, CachedRepositories {
  /** This node may have applied events that the log has lost: layers of those are not read any more. */
  doubt(): void;
  readonly newObjects: NewObjects;
  readonly newContents: NewContents;
  /** E.g. `2.39.5`. */
  readonly gitVersion: string;
  /** The bound on the memory of all git processes together; 0 without a control group. */
  readonly memoryGroupBytesMax: number;
  /** What answers of git take on disk and in memory, and what was made. */
  answerFigures(): AnswerFigures;
  /** Memory of small packs until git needs their files. */
  heldBytes(): number;
  /**
   * Does the work in a moment in which git works for no request; its signal is aborted at the end. Resolves when it is
   * done, or not begun before the end.
   */
  whenIdle(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Resolves when the background work (merging packs, bitmaps, removals) is done. */
  settled(): Promise<void>;
  /** Kills every process and waits for the background work under way. */
  close(): Promise<void>;
}

/**
 * Memory: 170 bytes for each of ten million objects, and room for deltas. File size: the largest pack together with the
 * delta bases that are added to it.
 */
const LIMITS: ProcessLimits = {
  memoryBytesMax: 2.5 * GIB,
  fileBytesMax: 8 * GIB,
  cpuSecondsMax: 20 * 60,
  openFilesMax: 4_096,
};
/** Bytes of cached upload-pack answers, as a share of `cacheBytesMax`. They are added to it. */
const ANSWERS_SHARE = 0.25;
/**
 * Many, because a process whose client sends slowly mostly waits, and keeps its slot while it waits. Internal: further
 * processes wait.
 */
const PROCESSES_MAX = 96;
/** A quarter of all, for one account. Internal: further processes wait. */
const PROCESSES_PER_ACCOUNT_MAX = 24;
/**
 * With 100 packs a fetch takes 6 ms longer. But a repository of `LAYERS_MAX` layers is compacted within seconds, in
 * which a busy one gets hundreds more, and packs that were merged here before would have to be fetched for that one by
 * one: so the compaction comes first, even if late. Internal: the objects are the same, merged or not.
 */
const PACKS_MAX = 8 * LAYERS_MAX;

const PAGES_MEMORY_BYTES = 32 * MIB;
/** Some hundreds of repositories with dozens of small pushes each, until they are compacted. */
const HELD_PACKS_MEMORY_BYTES = 32 * MIB;
const OBJECT_CACHE_MEMORY_BYTES = 16 * MIB;
const REACHABLE_SETS_MEMORY_BYTES = 32 * MIB;
const INCOMING: IncomingBounds = {
  bytesMax: PUSHES_ARRIVING_BYTES_MAX,
  accountBytesMax: PUSHES_ARRIVING_ACCOUNT_BYTES_MAX,
  kept: { bytes: PUSHES_ARRIVING_KEPT_BYTES, accountBytesMax: PUSHES_ARRIVING_FEW_BYTES },
};

/** Starts the process helper. Rejects when git is missing or older than 2.39.4. */
export async function createGitObjectDatabase(options: GitObjectDatabaseOptions): Promise<GitObjectDatabase> {
  const { layers, cacheBytesMax, log } = options;
  const directory = resolve(options.directory);
  await makePrivateFolder(directory);
  const memory = {
    pages: createFilePages({ memoryBytesMax: PAGES_MEMORY_BYTES }),
    cache: createObjectCache(OBJECT_CACHE_MEMORY_BYTES),
    turns: createReadTurns(nextTurn),
  };
  const memoryGroup = options.inMemoryGroup === true ? memoryGroupOf(log) : null;
  const runner = runnerOf(options, directory, memoryGroup);
  try {
    const git = await createGit(runner, options.gitPath);
    const bitmaps = createBitmaps(git, log);
    const graphs = createCommitGraphs(git, log);
    const answers = await createAnswerCache({
      directory: join(directory, 'answers'),
      bytesMax: Math.ceil(cacheBytesMax * ANSWERS_SHARE),
      onFault: (error) => log.warn({ err: error }, 'A cached answer could not be removed'),
    });
    const cache = await createLayerCache({
      directory,
      layers,
      ...cacheBoundsOf(options),
      memory,
      freeDisk: () => answers.freeDisk(),
      background: git.background,
      log,
      merge: mergeWith(git, [bitmaps, graphs]),
      // The newer folder lacks no commit of the older one, so the graph holds for it.
      onBegun: (from, to) => graphs.prepareReplacement(from, to),
      // Else the clones after each compaction would wait for git until another bitmap is there.
      onCompacted: (from, to) => bitmaps.prepareCompacted(from, to),
    });
    const views = createViewFolders({
      freeDisk: () => answers.freeDisk(),
      onError: (error) => log.warn({ error }, 'A view of refs could not be removed'),
    });
    const reachable = createReachableSets(git, REACHABLE_SETS_MEMORY_BYTES);
    const wholePacks = createWholePacks(git, log);
    const slots = createReadingSlots();
    const packChecks = packChecksOf(options, { git, slots });
    const quarantines: QuarantineContext = { git, cache, memory, wholePacks, ...packChecks, log };
    const shares = {
      slots,
      largeTrees: createFairSlots({ slots: LARGE_TREES_AT_ONCE_MAX, slotsPerKey: LARGE_TREES_PER_REPOSITORY_MAX }),
      archives: createArchiveContext(git, options.archiveLimits),
    };
    const readers: ReaderContext = { git, views, bitmaps, graphs, reachable, answers, wholePacks, ...shares };
    return {
      newObjects: createNewObjects(packChecks.hash),
      newContents: createNewContents(cache.incoming, packChecks.incomingBytes),
      gitVersion: git.version,
      memoryGroupBytesMax: tellBound(memoryGroup, log),
      answerFigures: () => answers.figures(),
      heldBytes: () => cache.heldBytes(),
      receive: (received) => receivePack(quarantines, received),
      open: (objects) => openRefilled(cache, readers, objects),
      heldAnswer: (repository, key) => answers.held(answerKeyStart(repository) + key),
      merge: (objects, merged, signal) => mergeLayers(quarantines, objects, merged, signal),
      keep: (objects, tips, signal) => keepReached(quarantines, objects, tips, signal),
      holdMore: createLayerCounts(git, cache),
      ...cacheControl(cache, answers, wholePacks),
      ...endOf(git, runner, cache, [git.background, bitmaps, graphs, wholePacks, cache]),
    };
  } catch (error) {
    await runner.close();
    throw error;
  }
}

type PackChecks = Pick<QuarantineContext, 'pushMemory' | 'incomingBytes' | 'smallPacks' | 'hash' | 'historyOf'>;

function packChecksOf(options: GitObjectDatabaseOptions, histories: HistoryContext): PackChecks {
  return {
    historyOf: (view) => createObjectHistory(histories, view),
    pushMemory: createPushMemory(options.pushMemoryBytesMax ?? PUSH_MEMORY_BYTES_MAX, options.pushCpu),
    incomingBytes: createIncomingBytes(options.incoming ?? INCOMING),
    smallPacks: createFairSlots({ slots: SMALL_PACKS_AT_ONCE_MAX, slotsPerKey: SMALL_PACKS_PER_ACCOUNT_MAX }),
    hash: hashOf(options),
  };
}

function runnerOf(
  options: GitObjectDatabaseOptions,
  directory: string,
  memoryGroup: MemoryGroup | null,
): ProcessRunner {
  return createProcessRunner({
    limits: { ...LIMITS, ...options.limits },
    memoryGroup,
    processesMax: options.processesMax ?? PROCESSES_MAX,
    processesPerKeyMax: options.processesPerAccountMax ?? PROCESSES_PER_ACCOUNT_MAX,
    ...(options.pacedWaitMs === undefined ? {} : { pacedWaitMs: options.pacedWaitMs }),
    directory: join(directory, 'helper'),
    onHelperLine: (line) => options.log.error({ line }, 'The process helper failed'),
  });
}

function cacheBoundsOf({
  cacheBytesMax,
  heldBytesMax = HELD_PACKS_MEMORY_BYTES,
  packsMax = PACKS_MAX,
}: GitObjectDatabaseOptions): Pick<LayerCacheOptions, 'cacheBytesMax' | 'heldBytesMax' | 'packsMax'> {
  return { cacheBytesMax, heldBytesMax, packsMax };
}

function memoryGroupOf(log: GitLog): MemoryGroup | null {
  const made = makeMemoryGroup();
  if (!('none' in made)) return made;
  log.info({ reason: made.none }, 'No control group bounds the memory of git');
  return null;
}

/** Called when git has run once, so that it is seen whether it runs in the group. */
function tellBound(group: MemoryGroup | null, log: GitLog): number {
  if (group === null) return 0;
  const { folder, bytesMax } = group;
  if (group.isInUse()) {
    log.info({ folder, bytesMax }, 'A control group bounds the memory of git');
    return bytesMax;
  }
  log.info({ folder, reason: 'git could not join it' }, 'No control group bounds the memory of git');
  return 0;
}

function hashOf({ hash, log }: GitObjectDatabaseOptions): HashObject | null {
  if (hash !== undefined) return hash;
  return loadObjectHash((err) => log.warn({ err }, 'git checks every push, because es-git cannot be loaded'));
}

function endOf(
  git: Git,
  runner: ProcessRunner,
  cache: Pick<LayerCache, 'writeHeld'>,
  parts: readonly { settled(): Promise<void> }[],
): Pick<GitObjectDatabase, 'whenIdle' | 'settled' | 'close'> {
  const settled = async () => {
    for (const part of parts) await part.settled();
  };
  const ending = new AbortController();
  return {
    whenIdle: (work) => git.background.run(() => work(ending.signal)),
    settled,
    close: async () => {
      ending.abort();
      git.background.close();
      await runner.close();
      await settled();
      await cache.writeHeld();
    },
  };
}

/** Merges a folder's small packs, and makes the new folder what it is worth to git. */
function mergeWith(
  git: Git,
  prepared: readonly Pick<CommitGraphs, 'prepareReplacement'>[],
): LayerCacheOptions['merge'] {
  return async (folder, incoming, parent) => {
    const merged = await mergeSmallPacks(git, folder, incoming, parent);
    if (merged === null) return null;
    try {
      for (const { prepareReplacement } of prepared) await prepareReplacement(folder, merged);
    } catch (error) {
      await removeFolder(merged);
      throw error;
    }
    return merged;
  };
}

function openRefilled(cache: LayerCache, readers: ReaderContext, objects: CommittedObjects): Promise<ObjectReader> {
  return createRefilledReader({
    open: async () => {
      const lease = await cache.acquire(objects);
      return { reader: createObjectReader(readers, lease, objects.place.account), folder: lease.folder };
    },
    isLost: async (folder, error) => (await cache.isLost(folder)) || error instanceof ViewLost,
  });
}

function cacheControl(
  cache: LayerCache,
  answers: AnswerCache,
  wholePacks: Pick<WholePacks, 'drop'>,
): CachedRepositories & Pick<GitObjectDatabase, 'drop' | 'doubt'> {
  return {
    drop: async (repository) => {
      cache.drop(repository);
      answers.drop(answerKeyStart(repository));
      wholePacks.drop(repository);
    },
    cached: () => [...new Set([...cache.repositories(), ...answers.keys().map(repositoryOfAnswer)])],
    doubt: () => cache.doubt(),
  };
}
