/** Collects close functions. `close` calls them all, last first, and throws AggregateError if any failed. */
export function closer(): { add(close: () => Promise<unknown>): void; close(): Promise<void> } {
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
