/**
 * The object database on native git: composition of cache, process runner, receiving and reading.
 *
 * Must stay true: everything under its directory may be deleted at any time; one process uses a directory.
 */
import { join, resolve } from 'node:path';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import { createAnswerCache } from './answer-cache.ts';
import { createBitmaps } from './cache/bitmaps.ts';
import { createFilePages } from './packs/file-pages.ts';
import { createGit } from './process/git-commands.ts';
import { createLayerCache } from './layer-cache.ts';
import type { GitLog } from './process/log.ts';
import { createObjectReader, type ReaderContext } from './object-reader.ts';
import { createKeptObjects } from './packs/pack-file.ts';
import type { ProcessLimits } from './process/helper-process.ts';
import { mergeSmallPacks } from './cache/pack-merging.ts';
import { createProcessRunner } from './process/process-runner.ts';
import type { QuarantineContext } from './receiving/quarantine.ts';
import { createReachableSets } from './packs/reachable-sets.ts';
import { receivePack } from './receiving/receive-pack.ts';
import { createViewFolders } from './cache/view-folders.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

export interface GitObjectDatabaseOptions {
  /** Of this process alone; made when missing. A fast local disk. */
  readonly directory: string;
  readonly layers: LayerStore;
  /** Absolute; by default the first git on the PATH. */
  readonly gitPath?: string;
  /** Packs and indexes kept on disk; exceeded only by what is in use. */
  readonly cacheBytesMax: number;
  readonly log: GitLog;
  /** Of each git process. */
  readonly limits?: Partial<ProcessLimits>;
  /** Git processes at once, in all and for one repository. */
  readonly processesMax?: number;
  readonly processesPerRepositoryMax?: number;
  /** Packs of a cached repository before they are merged, off the request path. */
  readonly packsMax?: number;
}

export interface GitObjectDatabase extends ObjectDatabase {
  /** E.g. `2.39.5`. */
  readonly gitVersion: string;
  /** Resolves when what is done behind the requests' backs (merging packs, bitmaps, removals) is done. */
  settled(): Promise<void>;
  /** Kills every process and waits for the removals under way. */
  close(): Promise<void>;
}

/** 170 bytes an object, ten million of them, and room for deltas; a file as large as the largest pack with its bases. */
const LIMITS: ProcessLimits = {
  memoryBytesMax: 2.5 * GIB,
  fileBytesMax: 8 * GIB,
  cpuSecondsMax: 20 * 60,
  openFilesMax: 4_096,
};
/** Beside the packs, of what they may take. */
const ANSWERS_SHARE = 0.25;
/** Many: a process whose client is slow mostly waits, and holds its place. */
const PROCESSES_MAX = 96;
const PROCESSES_PER_REPOSITORY_MAX = 64;
/** A fetch takes 6 ms more at this many. */
const PACKS_MAX = 100;
const PAGES_MEMORY_BYTES = 32 * MIB;
const KEPT_OBJECTS_MEMORY_BYTES = 16 * MIB;
const REACHABLE_SETS_MEMORY_BYTES = 32 * MIB;

/** Starts the process helper; throws when there is no git, or one older than 2.39. */
export async function createGitObjectDatabase(options: GitObjectDatabaseOptions): Promise<GitObjectDatabase> {
  const { layers, cacheBytesMax, log } = options;
  const directory = resolve(options.directory);
  const memory = {
    pages: createFilePages({ memoryBytesMax: PAGES_MEMORY_BYTES }),
    kept: createKeptObjects(KEPT_OBJECTS_MEMORY_BYTES),
  };
  const runner = createProcessRunner({
    limits: { ...LIMITS, ...options.limits },
    processesMax: options.processesMax ?? PROCESSES_MAX,
    processesPerKeyMax: options.processesPerRepositoryMax ?? PROCESSES_PER_REPOSITORY_MAX,
    directory: join(directory, 'helper'),
    onHelperLine: (line) => log.error({ line }, 'The process helper failed'),
  });
  try {
    const git = await createGit(runner, options.gitPath);
    const bitmaps = createBitmaps(git, log);
    const cache = await createLayerCache({
      directory,
      layers,
      cacheBytesMax,
      memory,
      log,
      packsMax: options.packsMax ?? PACKS_MAX,
      merge: async (folder, incoming, parent) => {
        const merged = await mergeSmallPacks(git, folder, incoming, parent);
        if (merged !== null) await bitmaps.carry(folder, merged);
        return merged;
      },
    });
    const views = createViewFolders((error) => log.warn({ error }, 'A view of refs stays on the disk'));
    const answers = await createAnswerCache({
      directory: join(directory, 'answers'),
      bytesMax: Math.ceil(cacheBytesMax * ANSWERS_SHARE),
      onFault: (error) => log.warn({ err: error }, 'A kept answer stays on the disk'),
    });
    const reachable = createReachableSets(git, REACHABLE_SETS_MEMORY_BYTES);
    const quarantines: QuarantineContext = { git, cache, memory, log };
    const readers: ReaderContext = { git, views, bitmaps, reachable, answers };
    return {
      gitVersion: git.version,
      receive: (received) => receivePack(quarantines, received),
      open: async (objects) => createObjectReader(readers, await cache.acquire(objects)),
      drop: async (repository) => cache.drop(repository),
      settled: async () => {
        await bitmaps.settled();
        await cache.settled();
      },
      close: async () => {
        await runner.close();
        await bitmaps.settled();
        await cache.settled();
      },
    };
  } catch (error) {
    await runner.close();
    throw error;
  }
}
