/**
 * Finds the device login that a code is of, whether a server runs or not.
 *
 * Must stay true: it sees every login requested before the call: the model is brought to the log's head first, by the
 * server's runner or by one of its own.
 */
import type { Logger } from 'pino';
import type { DeviceSessionId } from '../../core/kernel/ids.ts';
import { deviceSessionsProjection } from '../../projections/device-sessions/apply.ts';
import { readWaitingDeviceSessions } from '../../projections/device-sessions/queries.ts';
import { createLiveReader } from '../../projections/live-reader.ts';
import { createProjectionRunner } from '../../projections/runner/runner.ts';
import type { Foundation } from '../server/foundation.ts';
import { Refused } from './answer.ts';

/** Without a server the model may have far to go. */
const CATCH_UP_SPAN_MS = 60_000;

/** Throws `Refused` when no login waits under the code, or several do. */
export async function findDeviceSession(
  { context, pool }: Foundation,
  log: Logger,
  userCode: string,
): Promise<DeviceSessionId> {
  const models = [deviceSessionsProjection];
  const { events } = context;
  const runner = createProjectionRunner({ events, database: pool, models, complete: async (event) => event, log });
  try {
    await runner.start();
    await runner.waitFor(await events.head(), CATCH_UP_SPAN_MS);
    const reader = createLiveReader(pool, deviceSessionsProjection);
    const found = await readWaitingDeviceSessions(reader, userCode, context.clock.now());
    const [id] = found;
    if (id === undefined) throw new Refused(`No login waits under the code ${userCode}`);
    if (found.length > 1) throw new Refused(`Several logins wait under the code ${userCode}: begin yours again`);
    return id;
  } finally {
    await runner.close();
  }
}
