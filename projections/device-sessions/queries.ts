/** The query of device logins that wait for their user under a code. */
import type { DeviceSessionId, Timestamp } from '../../core/kernel/ids.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';

const waitingQuery: ReadQuery = {
  answer: (table) => `SELECT coalesce(json_agg(id ORDER BY expires_at), '[]') FROM ${table('device_sessions')}
    WHERE user_code = $1 AND expires_at > $2`,
};

/** Returns the ids in order of expiry. Codes are random, so there is hardly ever more than one. */
export async function readWaitingDeviceSessions(
  reader: LiveReader,
  userCode: string,
  now: Timestamp,
): Promise<readonly DeviceSessionId[]> {
  const { value } = await reader.read(waitingQuery, [userCode, now], (ids) => ({
    streams: (ids as readonly string[]).map((id) => `deviceSession-${id}`),
  }));
  return value as readonly DeviceSessionId[];
}
