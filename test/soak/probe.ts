/**
 * Loaded into the server of a soak before its own code (`node --import`): writes how much of its heap is in use after a
 * collection, which is what a leak adds to, and what it holds beside the heap.
 *
 * Invariants: only the server's main thread measures. Node passes the option on to the processes and threads that the
 * server starts.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { isMainThread } from 'node:worker_threads';
import { garbageCollection } from '../support/garbage-collection.ts';

const WRITTEN_EVERY_MS = 5_000;

const file = process.env['SOAK_MEMORY_FILE'];
if (file !== undefined && isMainThread && process.argv[1]?.endsWith('apps/server/main.ts') === true) {
  const collect = garbageCollection();
  const write = (): void => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    writeFileSync(`${file}.new`, JSON.stringify({ heapUsed, external }));
    renameSync(`${file}.new`, file);
  };
  write();
  setInterval(write, WRITTEN_EVERY_MS).unref();
}
