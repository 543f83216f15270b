/**
 * Background work on the cache's disk. Only a fetch that finds the disk full waits for it.
 *
 * Invariants: pieces of work run one after another, in the order in which they were added; one that fails stops no
 * later one. A folder is removed by first renaming it away whole, so that nobody finds part of it at its path.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { GitLog } from '../process/log.ts';
import { type CacheFolder, isMissing } from './cache-folder.ts';

export class DiskWork {
  readonly #trash: string;
  readonly #log: GitLog;
  #last: Promise<void> = Promise.resolve();

  /** Folders that are being removed are moved into the directory `trash`, which each start empties. */
  constructor(trash: string, log: GitLog) {
    this.#trash = trash;
    this.#log = log;
  }

  enqueue(work: () => Promise<void>): void {
    this.#last = this.#last
      .then(work)
      .catch((error: unknown) => this.#log.error({ error }, 'Background work on the cache failed'));
  }

  remove(folder: CacheFolder): void {
    const trash = join(this.#trash, randomUUID());
    folder.held.clear();
    this.enqueue(async () => {
      try {
        await mkdir(this.#trash, { recursive: true });
        await rename(folder.path, trash);
        await rm(trash, { recursive: true, force: true });
      } catch (error) {
        // A missing folder was removed by somebody else.
        if (isMissing(error)) return;
        this.#log.warn({ folder: folder.path, error }, 'A cached repository could not be removed from the disk');
      }
    });
  }

  /** Resolves when all work added so far is done. */
  settled(): Promise<void> {
    return this.#last;
  }
}
