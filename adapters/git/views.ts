/**
 * View folders: the refs of one moment over a repository's cached objects, for git upload-pack (git-path, Fetch).
 *
 * Must stay true: a view never changes once it has its name; it is made aside and renamed into place.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { LRUCache } from 'lru-cache';
import type { RefsView } from '../../core/ports/object-database.ts';

/** Views kept on disk: a view takes about 100 bytes a ref. */
const VIEWS_MAX = 1_000;

export interface Views {
  /** The folder of the view over the objects of `gitDir`; made when it is not there. */
  folder(repository: string, gitDir: string, view: RefsView): Promise<string>;
}

export async function createViews(directory: string): Promise<Views> {
  // Views of an earlier process may lead to objects that were evicted since.
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  const making = new Map<string, Promise<string>>();
  const made = new LRUCache<string, string>({
    max: VIEWS_MAX,
    dispose: (folder) => {
      // A process that still runs in it keeps its open files; the rest of what it needs it has read at its start.
      void rm(folder, { recursive: true, force: true });
    },
  });

  async function make(gitDir: string, view: RefsView): Promise<string> {
    const draft = path.join(directory, `draft-${randomUUID()}`);
    await mkdir(path.join(draft, 'refs'), { recursive: true });
    await symlink(path.join(gitDir, 'objects'), path.join(draft, 'objects'));
    await writeFile(path.join(draft, 'HEAD'), `ref: ${view.head}\n`);
    await writeFile(path.join(draft, 'packed-refs'), packedRefs(view));
    const folder = path.join(directory, randomUUID());
    await rename(draft, folder);
    return folder;
  }

  return {
    async folder(repository, gitDir, view) {
      const key = `${repository} ${view.key}`;
      const known = made.get(key);
      if (known !== undefined && (await exists(known))) return known;
      let running = making.get(key);
      if (running === undefined) {
        await mkdir(directory, { recursive: true });
        running = make(gitDir, view).finally(() => making.delete(key));
        making.set(key, running);
        made.set(key, await running);
      }
      return running;
    },
  };
}

/** git-pack-refs(1): with this header git neither sorts nor peels again. */
function packedRefs(view: RefsView): string {
  const lines = ['# pack-refs with: peeled fully-peeled sorted \n'];
  for (const { name, id, peeled } of view.refs) {
    lines.push(`${id} ${name}\n`);
    if (peeled !== null) lines.push(`^${peeled}\n`);
  }
  return lines.join('');
}

async function exists(folder: string): Promise<boolean> {
  try {
    await stat(folder);
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
    throw error;
  }
}
