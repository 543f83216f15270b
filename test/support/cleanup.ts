/**
 * What a test must undo at its end, in the reverse order of doing: node:test runs its own hooks in the order they
 * were given, which would remove a directory before the server in it is stopped.
 */
import { after, type TestContext } from 'node:test';

/** A test's context, or a suite's `{after}`. */
export type Ending = Pick<TestContext, 'after'>;
type Step = () => unknown;

const stepsOf = new WeakMap<Ending, Step[]>();

/** Runs the step after the test, before all steps that were given earlier. A failing step stops no other. */
export function cleanUp(context: Ending, step: Step): void {
  const known = stepsOf.get(context);
  if (known !== undefined) {
    known.push(step);
    return;
  }
  const steps = [step];
  stepsOf.set(context, steps);
  context.after(async () => {
    const failures: unknown[] = [];
    for (let next = steps.pop(); next !== undefined; next = steps.pop()) {
      try {
        await next();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw new AggregateError(failures, 'Cleaning up failed');
  });
}

/** For what a suite's `before` makes: call it in the body of `describe`. */
export function suiteEnding(): Ending {
  const steps: Step[] = [];
  after(async () => {
    for (const step of steps.toReversed()) await step();
  });
  return {
    after: (step) => {
      if (step !== undefined) steps.push(step as Step);
    },
  };
}
