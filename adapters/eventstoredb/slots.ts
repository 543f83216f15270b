/**
 * A bound on how much is under way at a time, first come first served.
 *
 * Must stay true: a slot is given back whatever becomes of the work.
 */
export interface Slots {
  /** Runs the work once a slot is free. */
  hold<T>(work: () => Promise<T>): Promise<T>;
}

export function createSlots(count: number): Slots {
  const waiting: (() => void)[] = [];
  let free = count;
  return {
    hold: async (work) => {
      if (free > 0) free -= 1;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      try {
        return await work();
      } finally {
        const next = waiting.shift();
        if (next === undefined) free += 1;
        else next();
      }
    },
  };
}
