/**
 * Fault points armed by the environment: a test's server process dies at a named step.
 *
 * Must stay true: without `STRATA_FAULT_POINT` every point is a call that does nothing; a name that is none
 * stops the start, so that no test passes because it armed nothing.
 */
import { FAULT_POINTS, type Reach } from '../../core/ports/failpoints.ts';
import { SettingsError } from './settings.ts';

const NEVER = async (): Promise<void> => undefined;

export function armedFaultPoints(environment: Readonly<Record<string, string | undefined>>): Reach {
  const armed = environment['STRATA_FAULT_POINT'];
  if (armed === undefined || armed === '') return NEVER;
  if (!FAULT_POINTS.some((point) => point === armed)) {
    throw new SettingsError(
      `STRATA_FAULT_POINT is ${JSON.stringify(armed)}: expected one of ${FAULT_POINTS.join(', ')}`,
    );
  }
  return async (point) => {
    if (point !== armed) return;
    process.kill(process.pid, 'SIGKILL');
    // The signal may take a moment: nothing may happen after this point.
    await new Promise(() => undefined);
  };
}
