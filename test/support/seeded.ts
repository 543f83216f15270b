/**
 * Deterministic randomness: a seed decides every choice, and which of several waiting tasks runs next.
 *
 * Invariants: the same seed gives the same choices in the same order, as long as tasks wait only for turns of this
 * scheduler.
 */

export interface Dice {
  /** An integer from 0 up to, but not including, the bound. */
  below(bound: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
}

/** The generator Mulberry32: 32 bits of state, enough to keep millions of runs distinct. */
export function createDice(seed: number): Dice {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (bound: number): number => Math.floor(next() * bound);
  return {
    below,
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[below(items.length)];
      if (item === undefined) throw new Error('There is nothing to pick from');
      return item;
    },
  };
}

export interface Scheduler {
  /** Resolves when the scheduler gives the caller a turn. */
  pause(): Promise<void>;
  /** Gives turns one at a time until the work is done; rejects when no task is waiting and the work is not done. */
  run(work: Promise<unknown>): Promise<void>;
  /** Wakes all waiting tasks; from now on `pause` does not wait. */
  stopPausing(): void;
}

export function createScheduler(dice: Dice): Scheduler {
  const waiting: (() => void)[] = [];
  let free = false;
  return {
    pause: () => (free ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
    async run(work) {
      let done = false;
      const end = (): void => {
        done = true;
      };
      work.then(end, end);
      for (;;) {
        // Lets every task run that needs no turn.
        await new Promise((resolve) => setImmediate(resolve));
        if (done) break;
        const [next] = waiting.splice(dice.below(waiting.length), 1);
        if (next === undefined) throw new Error('The work is not done, and no task waits for a turn');
        next();
      }
      await work;
    },
    stopPausing() {
      free = true;
      for (const next of waiting.splice(0)) next();
    },
  };
}
