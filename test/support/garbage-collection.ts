/** Collects garbage when a test asks for it, to see what is still held. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Returns the function that collects all garbage together. */
export function garbageCollection(): () => void {
  setFlagsFromString('--expose-gc');
  const collect: unknown = runInNewContext('gc');
  if (typeof collect !== 'function') throw new Error('This Node cannot be told to collect garbage');
  return () => void collect();
}
