/** What is open, and closed in the reverse order of opening. */
export interface Closer {
  /** Adds a function that closes what was just opened. */
  add(close: () => Promise<unknown>): void;
  /** Calls them all, last first, and throws AggregateError if any failed. */
  close(): Promise<void>;
}

export function closer(): Closer {
  const steps: (() => Promise<unknown>)[] = [];
  return {
    add: (step) => steps.push(step),
    async close() {
      const failures: unknown[] = [];
      for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
        try {
          await step();
        } catch (error) {
          failures.push(error);
        }
      }
      if (failures.length > 0) throw new AggregateError(failures, 'Not everything closed');
    },
  };
}
