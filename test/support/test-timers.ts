/** Timers of a clock that stands still until a test moves it. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import type { TestClock } from './test-clock.ts';

export interface TestTimers {
  /** Calls once when the clock was moved so far; the function returned takes that back. */
  after(ms: number, call: () => void): () => void;
  /** When those that stand are due. */
  standing(): readonly Timestamp[];
  /** Moves the clock to the next timer and calls it; false when none stands. */
  toNext(): boolean;
}

export function createTestTimers(clock: TestClock): TestTimers {
  const timers = new Map<symbol, { readonly at: Timestamp; readonly call: () => void }>();
  return {
    after(ms, call) {
      const id = Symbol('timer');
      timers.set(id, { at: plusMs(clock.now(), ms), call });
      return () => timers.delete(id);
    },
    standing: () => [...timers.values()].map(({ at }) => at),
    toNext() {
      const [next] = [...timers].toSorted(([, a], [, b]) => (a.at < b.at ? -1 : 1));
      if (next === undefined) return false;
      const [id, { at, call }] = next;
      timers.delete(id);
      if (at > clock.now()) clock.set(at);
      call();
      return true;
    },
  };
}

/** Resolves once the condition holds; throws when it does not though everything had its turn. */
export async function eventually(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let turn = 0; turn < 2_000; turn += 1) {
    if (await isSo()) return;
    await nextTurn();
  }
  throw new Error('It never came to that');
}
