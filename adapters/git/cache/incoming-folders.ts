/**
 * Folders for incoming files, on the cache's file system: quarantines, and layers that are being fetched.
 *
 * Invariants: a folder that is handed out is empty; one that may still hold a file is removed, not reused.
 */
import { randomUUID } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';

/**
 * Empty folders kept for the next pushes: making and removing one costs more than the rest of a small push here.
 * Internal: a folder that is not kept is made again.
 */
const FREE_MAX = 16;

export interface IncomingFolders {
  /** An empty folder with an empty folder `pack` in it. */
  take(): Promise<string>;
  /** Takes back a folder whose files were all moved away. */
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
    // Somebody deleted it, as anybody may delete any part of the cache.
    return false;
  }
}
