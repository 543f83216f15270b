/** An ending for programs that use the tests' support outside the test runner. */
import type { Ending } from './cleanup.ts';

export interface OwnEnding {
  readonly ending: Ending;
  /** Runs the steps from the last to the first, the others even if one fails. Idempotent; throws AggregateError. */
  end(): Promise<void>;
}

/** Steps that run at the end of this process: by `end`, or when it is interrupted. */
export function createOwnEnding(): OwnEnding {
  const steps: (() => unknown)[] = [];
  let ended: Promise<void> | null = null;
  const end = (): Promise<void> => (ended ??= runAll(steps));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void end().finally(() => process.exit(1)));
  }
  return { ending: { onTestFinished: (step) => void steps.push(step) }, end };
}

async function runAll(steps: (() => unknown)[]): Promise<void> {
  const faults: unknown[] = [];
  for (let next = steps.pop(); next !== undefined; next = steps.pop()) {
    try {
      await next();
    } catch (error) {
      faults.push(error);
    }
  }
  if (faults.length > 0) throw new AggregateError(faults, 'The run could not clean up after itself');
}
