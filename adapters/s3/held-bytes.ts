/**
 * Bounds the bytes of layers that wait in memory for one bucket.
 *
 * Must stay true: they are granted in the order of the requests, so that a large one is never starved; who waits too
 * long gets a failure.
 */
import { S3Failure } from './failures.ts';

export interface HeldBytes {
  /** Resolves when there is room, with a function that gives it back. */
  take(bytes: number): Promise<() => void>;
}

export function createHeldBytes(bytesMax: number, waitMsMax: number): HeldBytes {
  const waiting = new Set<{ readonly bytes: number; readonly grant: () => void }>();
  let held = 0;
  const serve = (): void => {
    for (const waiter of waiting) {
      if (held + waiter.bytes > bytesMax) return;
      waiting.delete(waiter);
      held += waiter.bytes;
      waiter.grant();
    }
  };
  return {
    take: (bytes) =>
      new Promise((resolve, reject) => {
        const release = (): void => {
          held -= bytes;
          serve();
        };
        const waiter = {
          bytes,
          grant: () => {
            clearTimeout(timer);
            resolve(release);
          },
        };
        const timer = setTimeout(() => {
          waiting.delete(waiter);
          reject(new S3Failure('throttled', 'Too many layers wait for the bucket'));
          serve();
        }, waitMsMax);
        waiting.add(waiter);
        serve();
      }),
  };
}
