/** Waiting for what comes by itself where nothing waits for real time. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TestClock } from './test-clock.ts';

/** Moves the clock to the next time that somebody waits for; false when nobody does. */
export function toNextAwaited(clock: TestClock): boolean {
  const [next] = clock.awaited().toSorted();
  if (next === undefined) return false;
  clock.set(next);
  return true;
}

/** Resolves once the condition holds; throws when it does not though everything had its turn. */
export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 2_000; turn += 1) {
    if (await isSo()) return;
    await nextTurn();
  }
  throw new Error('It never came to that');
}
