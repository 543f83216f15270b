/**
 * The object database by native git, on a cache of layers (core/ports/object-database.ts).
 *
 * Must stay true: everything under its directory is disposable; no git process outlives this one.
 */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Log } from '../../core/ports/log.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import { type ObjectDatabase, ObjectDatabaseError } from '../../core/ports/object-database.ts';
import { checkGitVersion, findGit, gitEnvironment } from './git-environment.ts';
import { createLayerCache } from './layer-cache.ts';
import { createProcessRunner } from './process-runner.ts';
import { createGitProcesses } from './processes.ts';
import { createReachableSets, createReader } from './reader.ts';
import { receivePack } from './receive.ts';
import { createViews } from './views.ts';

const GIB = 1024 ** 3;
/** A pack of 10 million objects takes 1.7 GB of index-pack's memory. */
const LIMITS = { memoryBytesMax: 3 * GIB, fileBytesMax: 16 * GIB, cpuSecondsMax: 3_600, openFilesMax: 4_096 };
const PROCESSES_MAX = 32;
const PROCESSES_PER_REPOSITORY_MAX = 16;

export interface GitObjectDatabaseOptions {
  /** Made when missing; may be deleted at any time. */
  readonly directory: string;
  readonly layers: LayerStore;
  /** Bytes of packs kept; repositories in use may exceed it for a while. */
  readonly cacheBytesMax: number;
  readonly log: Log;
  /** Absolute; the first on the PATH when absent. */
  readonly gitPath?: string;
}

export interface GitObjectDatabase extends ObjectDatabase {
  /** Bytes in the cache. */
  cachedBytes(): number;
  /** Kills what runs. */
  close(): Promise<void>;
}

/** Throws `object-database-unavailable` when there is no usable git. */
export async function createGitObjectDatabase(options: GitObjectDatabaseOptions): Promise<GitObjectDatabase> {
  const gitPath = await usableGit(options.gitPath);
  const { directory, layers, cacheBytesMax, log } = options;
  const cache = await createLayerCache({ directory, layers, cacheBytesMax, log });
  const views = await createViews(path.join(directory, 'views'));
  const runner = createProcessRunner({
    limits: LIMITS,
    compileCacheDirectory: path.join(directory, 'compile-cache'),
    processesMax: PROCESSES_MAX,
    processesPerKeyMax: PROCESSES_PER_REPOSITORY_MAX,
    onHelperLine: (line) => log.warn({ line }, 'The process helper wrote a line'),
  });
  const processes = createGitProcesses(runner, gitPath);
  const reachableSets = createReachableSets();
  return {
    receive: (received) => receivePack({ cache, processes }, received),
    async open(objects) {
      const lease = await cache.lease(objects);
      return createReader({ processes, views, reachableSets }, objects.repository, lease);
    },
    drop: (repository) => cache.drop(repository),
    cachedBytes: () => cache.sizeBytes(),
    close: () => runner.close(),
  };
}

async function usableGit(given: string | undefined): Promise<string> {
  try {
    const gitPath = await findGit(given);
    const { stdout } = await promisify(execFile)(gitPath, ['version'], { env: { ...gitEnvironment(gitPath) } });
    checkGitVersion(gitPath, stdout);
    return gitPath;
  } catch (cause) {
    const text = cause instanceof Error ? cause.message : 'git cannot be used';
    throw new ObjectDatabaseError('object-database-unavailable', text, { cause });
  }
}
