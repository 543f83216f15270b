/**
 * Finds the pending device logins with a user code, whether a server runs or not.
 *
 * Must stay true: it finds every login requested before the call. The read model is brought to the log's head first, by
 * the server's runner or by its own.
 */
import type { Logger } from 'pino';
import { pause } from '../../adapters/node/pause.ts';
import { createTakeLead } from '../../adapters/postgres/lead.ts';
import type { DeviceSessionId } from '../../core/kernel/ids.ts';
import { deviceSessionsProjection } from '../../projections/device-sessions/apply.ts';
import { readWaitingDeviceSessions } from '../../projections/device-sessions/queries.ts';
import { createLiveReader } from '../../projections/live-reader.ts';
import { createProjectionRunner } from '../../projections/runner/runner.ts';
import type { Foundation } from '../server/foundation.ts';

/** Without a running server the read model may be far behind the log. */
const CATCH_UP_SPAN_MS = 60_000;

/** Usually resolves to at most one session: codes are random, so two logins rarely share one. */
export async function findDeviceSessions(
  { context, pool }: Foundation,
  log: Logger,
  userCode: string,
): Promise<readonly DeviceSessionId[]> {
  const models = [deviceSessionsProjection];
  const { events } = context;
  const runner = createProjectionRunner({
    events,
    database: pool,
    takeLead: createTakeLead(pool),
    models,
    complete: async (event) => event,
    pause,
    log,
  });
  try {
    await runner.start();
    await runner.waitFor(await events.head(), CATCH_UP_SPAN_MS);
    const reader = createLiveReader(pool, deviceSessionsProjection, runner);
    return await readWaitingDeviceSessions(reader, userCode, context.clock.now());
  } finally {
    await runner.close();
  }
}
