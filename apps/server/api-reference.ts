/**
 * The API reference that the website shows, made at the first visit and kept.
 *
 * Invariants: it is made beside the event loop, which would stand still for more than 100 ms. Many visitors wait for
 * one thread, and a thread that failed is tried again at the next visit.
 */
import { Worker } from 'node:worker_threads';
import type { ApiReference } from '../website/docs/open-api.ts';

/** Loading the routes takes about a second; on a machine under load much longer. */
const SPAN_MS = 60_000;

export function createApiReference(version: string): () => Promise<ApiReference> {
  let made: Promise<ApiReference> | null = null;
  return () => {
    made ??= makeInThread(version).catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
}

function makeInThread(version: string): Promise<ApiReference> {
  // No environment: it may hold the master key and the database's password.
  const worker = new Worker(new URL('./api-reference-thread.ts', import.meta.url), {
    name: 'api-reference',
    workerData: version,
    env: {},
  });
  worker.unref();
  return new Promise<ApiReference>((resolve, reject) => {
    const end = (settle: () => void): void => {
      clearTimeout(late);
      settle();
      worker.terminate().catch(() => undefined);
    };
    const late = setTimeout(() => end(() => reject(new Error('The API reference took too long'))), SPAN_MS);
    worker
      .once('message', (reference: ApiReference) => end(() => resolve(reference)))
      .once('error', (error) => end(() => reject(error)))
      .once('exit', () => end(() => reject(new Error('The thread of the API reference ended'))));
  });
}
