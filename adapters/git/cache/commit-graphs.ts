/**
 * Commit-graphs (gitformat-commit-graph(5)) of cached repositories, written in the background: with one, walks over a
 * long history take a tenth of the time.
 *
 * Invariants: a graph only makes walks faster. It names commits of its own folder, which loses no object, so one of
 * old tips is as right as one of new tips; a folder without one works.
 */
import { link, mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ObjectId } from '../../../core/kernel/ids.ts';
import { lines } from '../packs/git-objects.ts';
import { commandError, type Git, type GitCommand } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';
import { type CacheFolder, isMissing, objectsPath, viewOf } from './cache-folder.ts';

/** In smaller repositories git is as fast without. Internal: git gives the same answers without the graph. */
const OBJECTS_MIN = 2_000;
/** A graph is written again when this many layers have come since. */
const LAYERS_BEHIND = 100;
/** The longest time for one that also says which paths each commit changed; else it is written without. */
const PATHS_SPAN_MS = 120_000;

export interface CommitGraphs {
  /**
   * Call it before a walk from these tips, which are commits or tags of the folder. Begins to write a graph if the
   * folder is large and has none, or an old one. `extendLease` keeps the folder for that time, and returns its release.
   */
  walked(folder: CacheFolder, tips: readonly ObjectId[], objectCount: number, extendLease: () => () => void): void;
  /** Links the graph of a folder into the one that is to replace it, if it has one. */
  prepareReplacement(from: CacheFolder, to: CacheFolder): Promise<void>;
  /** Resolves when the graphs that walks began are written. */
  settled(): Promise<void>;
}

export function createCommitGraphs(git: Git, log: GitLog): CommitGraphs {
  /** How many layers the folder had when its last graph was begun. */
  const written = new WeakMap<CacheFolder, number>();
  let running: Promise<void> = Promise.resolve();
  return {
    walked: (folder, tips, objectCount, extendLease) => {
      if (objectCount < OBJECTS_MIN || tips.length === 0) return;
      const before = written.get(folder);
      if (before !== undefined && folder.present.size < before + LAYERS_BEHIND) return;
      written.set(folder, folder.present.size);
      const release = extendLease();
      running = git.background
        .run(() => writeGraph(git, folder, tips))
        .catch((error: unknown) => log.warn({ folder: folder.path, error }, 'A commit-graph could not be written'))
        .finally(release);
    },
    prepareReplacement: async (from, to) => {
      const layers = written.get(from);
      if (layers === undefined) return;
      await mkdir(dirname(graphPath(to)), { recursive: true });
      try {
        await link(graphPath(from), graphPath(to));
        written.set(to, layers);
      } catch (error) {
        if (!isMissing(error)) throw error;
      }
    },
    settled: () => running,
  };
}

function graphPath(folder: CacheFolder): string {
  return join(objectsPath(folder), 'info', 'commit-graph');
}

async function writeGraph(git: Git, folder: CacheFolder, tips: readonly ObjectId[]): Promise<void> {
  const view = viewOf(folder);
  const write = async (options: readonly string[], wallMsMax: number): Promise<boolean> => {
    const args = ['commit-graph', 'write', '--stdin-commits', '--append', '--no-progress', ...options];
    const command: GitCommand = { args, view, config: [['core.fsync', 'none']], background: true, wallMsMax };
    let timedOut = false;
    const accepts: Parameters<Git['stream']>[2] = (end) => {
      timedOut = end.killed === 'timeout';
      if (!timedOut && end.code !== 0) throw commandError(command, end);
      return true;
    };
    for await (const _chunk of git.stream(command, lines(tips), accepts)) continue;
    return !timedOut;
  };
  if (!(await write(['--changed-paths'], PATHS_SPAN_MS))) await write([], PATHS_SPAN_MS);
}
