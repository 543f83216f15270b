/**
 * Failpoints armed by `STRATA_FAILPOINT`: a test makes its server process fail at a named step. `NAME` kills it;
 * `NAME:stop` stops it by SIGSTOP until a SIGCONT; `NAME:rejection` rejects a promise that nobody handles, and
 * `NAME:exception` throws where nobody catches, each time that the step is reached.
 *
 * Invariants: without `STRATA_FAILPOINT` every failpoint does nothing. An unknown name stops the start, so that no
 * test passes because its failpoint never fired.
 */
import { FAILPOINTS, type Failpoint } from '../../core/ports/failpoints.ts';
import { SettingsError } from './settings-reader.ts';

const NEVER = async (): Promise<void> => undefined;

/** Nobody looks into it. */
const unhandled: Promise<never>[] = [];

const FAILURES: Readonly<Record<string, () => Promise<void>>> = {
  kill: async () => {
    process.kill(process.pid, 'SIGKILL');
    // The signal may take a moment to arrive, and nothing may happen after this point.
    await new Promise(() => undefined);
  },
  stop: async () => void process.kill(process.pid, 'SIGSTOP'),
  rejection: async () => void unhandled.push(Promise.reject(new Error('The failpoint rejects a promise'))),
  exception: async () => {
    setImmediate(() => {
      throw new Error('The failpoint throws an exception');
    });
  },
};

export function armedFailpoint(environment: Readonly<Record<string, string | undefined>>): Failpoint {
  const armed = environment['STRATA_FAILPOINT'];
  if (armed === undefined || armed === '') return NEVER;
  const [name = '', kind = 'kill'] = armed.split(':');
  const fail = Object.hasOwn(FAILURES, kind) ? FAILURES[kind] : undefined;
  if (fail === undefined || !FAILPOINTS.some((point) => point === name)) {
    throw new SettingsError(`STRATA_FAILPOINT is ${JSON.stringify(armed)}: expected one of ${FAILPOINTS.join(', ')}`);
  }
  return async (point) => {
    if (point === name) await fail();
  };
}
