/**
 * A world in which a seed decides everything: what is chosen, and which of those who wait goes on next.
 *
 * Must stay true: the same seed gives the same choices in the same order, as long as nothing waits for anything
 * but a turn here.
 */

export interface Dice {
  /** A whole number from 0 to below the bound. */
  below(bound: number): number;
  chance(probability: number): boolean;
  pick<Item>(items: readonly Item[]): Item;
}

/** Mulberry32: 32 bits of state, enough to tell millions of runs apart. */
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
  /** Waits for a turn. */
  pause(): Promise<void>;
  /** Gives turns, one at a time, until the work is done; fails when all wait for each other. */
  run(work: Promise<unknown>): Promise<void>;
  /** From now on nobody waits. */
  letGo(): void;
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
        // Whoever can go on without a turn does so first.
        await new Promise((resolve) => setImmediate(resolve));
        if (done) break;
        const [next] = waiting.splice(dice.below(waiting.length), 1);
        if (next === undefined) throw new Error('Everybody waits, and nobody can go on');
        next();
      }
      await work;
    },
    letGo() {
      free = true;
      for (const next of waiting.splice(0)) next();
    },
  };
}
