/**
 * Views: folders in which git sees a repository with one set of refs. A view has its own HEAD and packed-refs, and the
 * objects of the cache folder.
 *
 * Invariants: a view never changes after it was handed out, and stays while a process runs in it.
 */
import { randomUUID } from 'node:crypto';
import { lstat, mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RefsView } from '../../../core/ports/object-database.ts';
import { type CacheFolder, VIEWS } from './cache-folder.ts';
import { isDiskFull } from './disk-space.ts';

/** Views that are kept in each cache folder for the next fetches. Internal: what is not kept is made again. */
const VIEWS_MAX = 4;

export interface LeasedView {
  readonly path: string;
  /** Whether its files are still there. If not, this view is made again when it is next acquired. */
  isWhole(): Promise<boolean>;
  release(): void;
}

export interface ViewFolders {
  /** Resolves with the folder of this view, which it makes if needed. The caller must release it. */
  acquire(folder: CacheFolder, view: RefsView): Promise<LeasedView>;
}

interface Kept {
  readonly path: Promise<string>;
  uses: number;
}

export interface ViewFoldersOptions {
  /** Frees disk space before the cache gives up on a view. */
  readonly freeDisk: () => Promise<void>;
  /** Called for each view that could not be removed. */
  readonly onError: (error: unknown) => void;
}

export function createViewFolders({ freeDisk, onError }: ViewFoldersOptions): ViewFolders {
  // The views of each cache folder by key, in the order of their last use. They are removed with their cache folder.
  const folders = new WeakMap<CacheFolder, Map<string, Kept>>();

  const trim = (views: Map<string, Kept>) => {
    for (const [key, { path, uses }] of views) {
      if (views.size <= VIEWS_MAX) return;
      if (uses > 0) continue;
      views.delete(key);
      path.then((folder) => rm(folder, { recursive: true, force: true })).catch(onError);
    }
  };

  const makeWithDiskSpace = async (folder: CacheFolder, view: RefsView): Promise<string> => {
    try {
      return await makeView(folder, view);
    } catch (error) {
      if (!isDiskFull(error)) throw error;
      await freeDisk();
      return makeView(folder, view);
    }
  };

  return {
    acquire: async (folder, view) => {
      const views = folders.get(folder) ?? new Map<string, Kept>();
      folders.set(folder, views);
      const kept = views.get(view.key) ?? { path: makeWithDiskSpace(folder, view), uses: 0 };
      kept.uses += 1;
      views.delete(view.key);
      views.set(view.key, kept);
      try {
        const path = await kept.path;
        const release = () => {
          kept.uses -= 1;
          trim(views);
        };
        const isWhole = async () => {
          if (await isWholeView(path)) return true;
          if (views.get(view.key) === kept) views.delete(view.key);
          return false;
        };
        return { path, isWhole, release };
      } catch (error) {
        if (views.get(view.key) === kept) views.delete(view.key);
        throw error;
      }
    },
  };
}

async function makeView(folder: CacheFolder, view: RefsView): Promise<string> {
  const path = join(folder.path, VIEWS, randomUUID());
  await mkdir(join(path, 'refs'), { recursive: true });
  await Promise.all([
    writeFile(join(path, 'HEAD'), `ref: ${view.head}\n`),
    writeFile(join(path, 'packed-refs'), packedRefs(view.runs)),
    symlink('../../objects', join(path, 'objects')),
  ]);
  return path;
}

async function isWholeView(path: string): Promise<boolean> {
  const files = await Promise.allSettled(
    ['HEAD', 'packed-refs', 'refs', 'objects'].map((name) => lstat(join(path, name))),
  );
  return files.every(({ status }) => status === 'fulfilled');
}

/** With this header git trusts the order and the peeled ids, and checks neither. */
function* packedRefs(runs: RefsView['runs']): Generator<string> {
  yield '# pack-refs with: peeled fully-peeled sorted \n';
  // Written run by run, since there may be 200,000 refs.
  for (const run of runs) {
    yield run.map(({ name, id, peeled }) => `${id} ${name}\n${peeled === null ? '' : `^${peeled}\n`}`).join('');
  }
}
