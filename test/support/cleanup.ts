/** Steps that undo what a test or suite made. They run at its end in reverse order, as vitest runs its hooks. */
import { afterAll } from 'vitest';

/** The context of a test, or another scope that runs steps at its end. */
export interface Ending {
  onTestFinished(step: () => void | Promise<void>): void;
}

/** Runs the step after the test, before all steps that were added earlier. The other steps run even if one fails. */
export function cleanUp(context: Ending, step: () => unknown): void {
  context.onTestFinished(async () => {
    await step();
  });
}

/** The scope of a suite, for what its `beforeAll` makes. Call it in the body of `describe`. */
export function suiteEnding(): Ending {
  const steps: (() => unknown)[] = [];
  afterAll(async () => {
    for (let next = steps.pop(); next !== undefined; next = steps.pop()) await next();
  });
  return { onTestFinished: (step) => void steps.push(step) };
}
