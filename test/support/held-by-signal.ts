/** What a signal that lives long keeps in memory: the listeners on it, and the signals that were made of it. */
import assert from 'node:assert/strict';
import { getEventListeners } from 'node:events';
import { z } from 'zod';

const COUNTED = z.object({ size: z.number() });

/**
 * Node keeps a reference to each signal of `AbortSignal.any` that had a listener on its sources, and never removes it.
 */
function dependentsOf(signal: AbortSignal): number {
  const key = Object.getOwnPropertySymbols(signal).find(({ description }) => description === 'kDependantSignals');
  return key === undefined ? 0 : COUNTED.parse(Reflect.get(signal, key)).size;
}

/** Returns how many listeners and made signals the signal holds. */
export function heldBySignal(signal: AbortSignal): number {
  const sample = new AbortController();
  AbortSignal.any([sample.signal]).addEventListener('abort', () => undefined);
  assert.equal(dependentsOf(sample.signal), 1, 'Node counts the signals that are made of another in another way now');
  return getEventListeners(signal, 'abort').length + dependentsOf(signal);
}
