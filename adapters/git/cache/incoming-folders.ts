/**
 * Folders for what is on its way in: quarantines and layers being fetched, on the cache's file system.
 *
 * Must stay true: a folder that is handed out is empty; one that may hold anything is removed, not used again.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Folders that wait for the next push: making and removing one costs more than all else a small push does here. */
const FREE_MAX = 16;

export interface IncomingFolders {
  /** An empty folder with an empty folder `pack` in it. */
  take(): Promise<string>;
  /** Takes back one whose files were all moved away. */
  giveBack(folder: string): Promise<void>;
  remove(folder: string): Promise<void>;
}

export function createIncomingFolders(parent: string): IncomingFolders {
  const free: string[] = [];
  const remove = (folder: string) => rm(folder, { recursive: true, force: true, maxRetries: 3 });
  return {
    take: async () => {
      for (let folder = free.pop(); folder !== undefined; folder = free.pop()) {
        if (isEmpty(folder)) return folder;
        await remove(folder);
      }
      const folder = join(parent, randomUUID());
      await mkdir(join(folder, 'pack'), { recursive: true });
      return folder;
    },
    giveBack: async (folder) => {
      if (free.length < FREE_MAX) free.push(folder);
      else await remove(folder);
    },
    remove,
  };
}

function isEmpty(folder: string): boolean {
  try {
    return readdirSync(folder).join() === 'pack' && readdirSync(join(folder, 'pack')).length === 0;
  } catch {
    // Somebody deleted it: the cache is disposable.
    return false;
  }
}
