/** Waiting for effects in tests where nothing waits for real time. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { TestClock } from './test-clock.ts';

/** Moves the clock to the earliest awaited time; returns false when nobody waits. */
export function advanceToNextAwaited(clock: TestClock): boolean {
  const [next] = clock.awaited().toSorted();
  if (next === undefined) return false;
  clock.set(next);
  return true;
}

/** Resolves when the condition holds; throws when it does not hold after 2,000 turns of the event loop. */
export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 2_000; turn += 1) {
    if (await isSo()) return;
    await nextTurn();
  }
  throw new Error('The condition did not hold within 2,000 turns');
}

/** Lets what is on its way between two parts of this process arrive, such as the bytes of a connection. */
export async function turns(): Promise<void> {
  for (let turn = 0; turn < 50; turn += 1) await nextTurn();
}
