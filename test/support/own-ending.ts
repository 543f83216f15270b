/** An ending for programs that use the tests' support outside the test runner. */
import { closer } from '../../apps/server/closer.ts';
import type { Ending } from './cleanup.ts';

export interface OwnEnding {
  readonly ending: Ending;
  /** Runs the steps from the last to the first, the others even if one fails. Idempotent; throws AggregateError. */
  end(): Promise<void>;
}

/** Steps that run at the end of this process: by `end`, or when it is interrupted. */
export function createOwnEnding(): OwnEnding {
  const steps = closer();
  let ended: Promise<void> | null = null;
  const end = (): Promise<void> => (ended ??= steps.close());
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void end().finally(() => process.exit(1)));
  }
  return { ending: { onTestFinished: (step) => steps.add(async () => step()) }, end };
}
