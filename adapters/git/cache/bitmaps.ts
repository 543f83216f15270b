/**
 * Bitmaps of what a repository's tips reach, made off the request path: whole clones then take a quarter of the time.
 *
 * Must stay true: they only make answers faster. A bitmap of old tips is as right as one of new ones, and a folder
 * without one works.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RefsView } from '../../../core/ports/object-database.ts';
import type { CacheFolder } from './cache-folder.ts';
import { commandError, type Git, type GitCommand } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';

/** In smaller repositories git is as fast without. */
const OBJECTS_MIN = 2_000;

export interface Bitmaps {
  /** A fetch was served from the folder: the first one of a large repository has a bitmap made for the next. */
  fetched(folder: CacheFolder, view: RefsView, objectCount: number, hold: () => () => void): void;
  /** Makes the same for a folder that is to take another's place, of the refs seen last. */
  carry(from: CacheFolder, to: CacheFolder): Promise<void>;
  settled(): Promise<void>;
}

export function createBitmaps(git: Git, log: GitLog): Bitmaps {
  const views = new WeakMap<CacheFolder, RefsView>();
  const asked = new WeakSet<CacheFolder>();
  // One at a time: they take a processor each.
  let running: Promise<void> = Promise.resolve();
  return {
    fetched: (folder, view, objectCount, hold) => {
      if (objectCount < OBJECTS_MIN) return;
      views.set(folder, view);
      if (asked.has(folder)) return;
      asked.add(folder);
      const release = hold();
      running = running
        .then(() => writeBitmap(git, folder, view))
        .catch((error: unknown) => log.warn({ folder: folder.path, error }, 'A bitmap was not written'))
        .finally(release);
    },
    carry: async (from, to) => {
      const view = views.get(from);
      if (view === undefined) return;
      views.set(to, view);
      asked.add(to);
      await writeBitmap(git, to, view);
    },
    settled: () => running,
  };
}

/** A multi-pack index with a bitmap. Needs the lease on the folder; the files take older ones' places at once. */
async function writeBitmap(git: Git, folder: CacheFolder, view: RefsView): Promise<void> {
  const tips = new Set<string>();
  for (const { id } of view.refs) tips.add(`${id}\n`);
  const [first, ...others] = folder.present.values();
  if (tips.size === 0 || first === undefined) return;
  const largest = others.reduce((a, b) => (b.packBytes > a.packBytes ? b : a), first);
  const snapshot = join(folder.path, 'bitmap-tips');
  await writeFile(snapshot, [...tips].join(''));
  const preferred = `pack-${largest.pack}.pack`;
  const command: GitCommand = {
    args: ['multi-pack-index', 'write', '--bitmap', `--refs-snapshot=${snapshot}`, `--preferred-pack=${preferred}`],
    view: { key: folder.repository, variables: { GIT_DIR: folder.path } },
    config: [['core.fsync', 'none']],
  };
  const end = await git.answer(command);
  if (end.code !== 0) throw commandError(command, end);
}
