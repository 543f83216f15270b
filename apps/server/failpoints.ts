/**
 * Failpoints armed by `STRATA_FAILPOINT`: a test makes its server process die at a named step.
 *
 * Must stay true: without `STRATA_FAILPOINT` every failpoint does nothing. An unknown name stops the start, so that no
 * test passes because its failpoint never fired.
 */
import { FAILPOINTS, type Failpoint } from '../../core/ports/failpoints.ts';
import { SettingsError } from './settings.ts';

const NEVER = async (): Promise<void> => undefined;

export function armedFailpoint(environment: Readonly<Record<string, string | undefined>>): Failpoint {
  const armed = environment['STRATA_FAILPOINT'];
  if (armed === undefined || armed === '') return NEVER;
  if (!FAILPOINTS.some((point) => point === armed)) {
    throw new SettingsError(`STRATA_FAILPOINT is ${JSON.stringify(armed)}: expected one of ${FAILPOINTS.join(', ')}`);
  }
  return async (point) => {
    if (point !== armed) return;
    process.kill(process.pid, 'SIGKILL');
    // The signal may take a moment to arrive, and nothing may happen after this point.
    await new Promise(() => undefined);
  };
}
