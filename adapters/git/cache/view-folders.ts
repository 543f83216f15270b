/**
 * Repositories as git sees them at one set of refs: a folder with HEAD and packed-refs whose objects are the
 * cache's.
 *
 * Must stay true: a view never changes once it can be seen, and stays while a process runs in it.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RefsView } from '../../../core/ports/object-database.ts';
import { type CacheFolder, VIEWS } from './cache-folder.ts';

/** Views kept for the next fetch, of each repository. */
const VIEWS_MAX = 4;

export interface HeldView {
  readonly path: string;
  release(): void;
}

export interface ViewFolders {
  /** The folder of this view, made when it is not there. */
  hold(folder: CacheFolder, view: RefsView): Promise<HeldView>;
}

interface Kept {
  readonly path: Promise<string>;
  uses: number;
}

/** `onError` hears of views that could not be removed. */
export function createViewFolders(onError: (error: unknown) => void): ViewFolders {
  // By key, in the order of their last use; they go with their cache folder.
  const folders = new WeakMap<CacheFolder, Map<string, Kept>>();

  const trim = (views: Map<string, Kept>) => {
    for (const [key, { path, uses }] of views) {
      if (views.size <= VIEWS_MAX) return;
      if (uses > 0) continue;
      views.delete(key);
      path.then((folder) => rm(folder, { recursive: true, force: true })).catch(onError);
    }
  };

  return {
    hold: async (folder, view) => {
      const views = folders.get(folder) ?? new Map<string, Kept>();
      folders.set(folder, views);
      const kept = views.get(view.key) ?? { path: makeView(folder, view), uses: 0 };
      kept.uses += 1;
      views.delete(view.key);
      views.set(view.key, kept);
      try {
        const path = await kept.path;
        const release = () => {
          kept.uses -= 1;
          trim(views);
        };
        return { path, release };
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
    writeFile(join(path, 'packed-refs'), packedRefs(view.refs)),
    symlink('../../objects', join(path, 'objects')),
  ]);
  return path;
}

/** With this header git believes the order and the peeled ids, and looks neither up again. */
function packedRefs(refs: RefsView['refs']): string {
  const lines = ['# pack-refs with: peeled fully-peeled sorted \n'];
  for (const { name, id, peeled } of refs) lines.push(`${id} ${name}\n`, peeled === null ? '' : `^${peeled}\n`);
  return lines.join('');
}
