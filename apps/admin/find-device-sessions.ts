/**
 * Finds the device logins that wait under a code, whether a server runs or not.
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

/** Without a server the model may have far to go. */
const CATCH_UP_SPAN_MS = 60_000;

/** Mostly one; codes are random, so more than one hardly ever. */
export async function findDeviceSessions(
  { context, pool }: Foundation,
  log: Logger,
  userCode: string,
): Promise<readonly DeviceSessionId[]> {
  const models = [deviceSessionsProjection];
  const { events } = context;
  const runner = createProjectionRunner({ events, database: pool, models, complete: async (event) => event, log });
  try {
    await runner.start();
    await runner.waitFor(await events.head(), CATCH_UP_SPAN_MS);
    const reader = createLiveReader(pool, deviceSessionsProjection, runner);
    return await readWaitingDeviceSessions(reader, userCode, context.clock.now());
  } finally {
    await runner.close();
  }
}
