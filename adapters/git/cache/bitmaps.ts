/**
 * Reachability bitmaps for a repository's tips, written in the background: with one, a whole clone takes a quarter of
 * the time.
 *
 * Invariants: bitmaps only make answers faster. A bitmap of old tips is as correct as one of new tips, and a folder
 * without one works.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RefsView } from '../../../core/ports/object-database.ts';
import { commandError, type Git, type GitCommand } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';
import { type CacheFolder, viewOf } from './cache-folder.ts';

/** In smaller repositories git is as fast without a bitmap. Internal: git gives the same answers without a bitmap. */
const OBJECTS_MIN = 2_000;

export interface Bitmaps {
  /**
   * Call it after a fetch from the folder. After the first fetch of a large repository it writes a bitmap for the next
   * ones. `extendLease` keeps the folder for that time, and returns its release.
   */
  fetched(folder: CacheFolder, view: RefsView, objectCount: number, extendLease: () => () => void): void;
  /** Writes a bitmap of the last fetched refs into a folder that is to replace another one; nothing before a fetch. */
  prepareReplacement(from: CacheFolder, to: CacheFolder): Promise<void>;
  /**
   * As `prepareReplacement`, but only if somebody has fetched from that very folder: a repository that is compacted
   * again and again, and never fetched, gets no bitmaps.
   */
  prepareCompacted(from: CacheFolder, to: CacheFolder): Promise<void>;
  /** Resolves when the bitmaps that fetches began are written. */
  settled(): Promise<void>;
}

export function createBitmaps(git: Git, log: GitLog): Bitmaps {
  const views = new WeakMap<CacheFolder, RefsView>();
  const requested = new WeakSet<CacheFolder>();
  const fetchedFrom = new WeakSet<CacheFolder>();
  let running: Promise<void> = Promise.resolve();
  const prepareReplacement: Bitmaps['prepareReplacement'] = async (from, to) => {
    const view = views.get(from);
    if (view === undefined) return;
    views.set(to, view);
    requested.add(to);
    await writeBitmap(git, to, view);
  };
  return {
    fetched: (folder, view, objectCount, extendLease) => {
      if (objectCount < OBJECTS_MIN) return;
      views.set(folder, view);
      fetchedFrom.add(folder);
      if (requested.has(folder)) return;
      requested.add(folder);
      const release = extendLease();
      running = git.background
        .run(() => writeBitmap(git, folder, view))
        .catch((error: unknown) => log.warn({ folder: folder.path, error }, 'A bitmap could not be written'))
        .finally(release);
    },
    prepareReplacement,
    prepareCompacted: async (from, to) => {
      if (fetchedFrom.has(from)) await prepareReplacement(from, to);
    },
    settled: () => running,
  };
}

/** Writes a multi-pack index with a bitmap in the place of older ones. The caller holds a lease on the folder. */
async function writeBitmap(git: Git, folder: CacheFolder, view: RefsView): Promise<void> {
  const tips = new Set<string>();
  for (const run of view.runs) for (const { id } of run) tips.add(`${id}\n`);
  const [first, ...others] = folder.present.values();
  if (tips.size === 0 || first === undefined) return;
  const largest = others.reduce((a, b) => (b.packBytes > a.packBytes ? b : a), first);
  const snapshot = join(folder.path, 'bitmap-tips');
  await writeFile(snapshot, [...tips].join(''));
  const preferred = `pack-${largest.pack}.pack`;
  const command: GitCommand = {
    args: ['multi-pack-index', 'write', '--bitmap', `--refs-snapshot=${snapshot}`, `--preferred-pack=${preferred}`],
    view: viewOf(folder),
    config: [['core.fsync', 'none']],
    background: true,
  };
  const end = await git.run(command);
  if (end.code !== 0) throw commandError(command, end);
}
