/**
 * The requests of device logins on PostgreSQL (core/ports/device-login-requests.ts), which are also the rows of the
 * workflow that ends them.
 *
 * Must stay true: each call is one statement, so a process that dies leaves no lock and nothing half. A row's revision
 * changes with its step.
 */
import type pg from 'pg';
import { type DeviceSessionId, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import {
  type DeviceLoginRequest,
  type DeviceLoginRequests,
  DeviceLoginRequestsError,
  type DeviceRequestStep,
} from '../../core/ports/device-login-requests.ts';
import type { OverdueTimers, Timer, WaitingRows } from '../../core/ports/workflows.ts';
import { queryReporting } from './outages.ts';

const query = queryReporting((cause) => new DeviceLoginRequestsError('PostgreSQL cannot be reached', { cause }));

export type PostgresDeviceLoginRequests = DeviceLoginRequests & OverdueTimers & WaitingRows<DeviceRequestStep>;

const TIMER = 'id, step, due_at AS "dueAt", revision';

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresDeviceLoginRequests(pool: pg.Pool): PostgresDeviceLoginRequests {
  const timers = async (text: string, values: readonly unknown[]): Promise<readonly Timer<DeviceRequestStep>[]> =>
    (await query<Timer<DeviceRequestStep>>(pool, text, values)).rows;
  return {
    ...requestsOn(pool),
    waitOf: async (id) => (await timers(`SELECT ${TIMER} FROM device_login_requests WHERE id = $1`, [id]))[0] ?? null,
    earliest: (limit) => timers(`SELECT ${TIMER} FROM device_login_requests ORDER BY due_at, id LIMIT $1`, [limit]),
    untold: (engine, limit) =>
      timers(`SELECT ${TIMER} FROM device_login_requests WHERE told IS DISTINCT FROM $1 ORDER BY due_at, id LIMIT $2`, [
        engine,
        limit,
      ]),
    markTold: async (engine, ids) => {
      await query(pool, MARK_TOLD, [engine, ids]);
    },
    overdue: async (now) => {
      const text = 'SELECT count(*)::int AS count, min(due_at) AS oldest FROM device_login_requests WHERE due_at <= $1';
      const { rows } = await query<{ count: number; oldest: Timestamp | null }>(pool, text, [now]);
      return { count: rows[0]?.count ?? 0, oldestAt: rows[0]?.oldest ?? null };
    },
  };
}

function requestsOn(pool: pg.Pool): DeviceLoginRequests {
  return {
    async add({ id, secretHash, network, requestedAt, expiresAt, device }, { pendingMax, keptSince }) {
      const request = {
        id,
        secret_hash: secretHash,
        network,
        requested_at: requestedAt,
        expires_at: expiresAt,
        user_code: device.userCode,
        hostname: Buffer.from(device.hostname, 'utf8').toString('base64'),
        address: device.address,
      };
      const values = [JSON.stringify(request), pendingMax, keptSince];
      await query(pool, 'SELECT add_device_login_request($1::json, $2, $3)', values);
    },
    async find(id) {
      const { rows } = await query<RequestRow>(pool, FIND, [id]);
      return rows[0] === undefined ? null : toRequest(rows[0]);
    },
    async hold(id) {
      const text = 'UPDATE device_login_requests SET is_held = true WHERE id = $1';
      return (await query(pool, text, [id])).rowCount === 1;
    },
    async underCode(userCode, now) {
      const text = `SELECT id FROM device_login_requests WHERE user_code = $1 AND expires_at > $2 ORDER BY expires_at, id`;
      return (await query<{ id: DeviceSessionId }>(pool, text, [userCode, now])).rows.map(({ id }) => id);
    },
    async forgetDevice(id, removeAt) {
      await query(pool, FORGET_DEVICE, [id, removeAt]);
    },
    async remove(id) {
      await query(pool, 'DELETE FROM device_login_requests WHERE id = $1', [id]);
    },
  };
}

/** Waits for no row, so that it cannot lock out an addition that waits for one of these: such a row is told again. */
const MARK_TOLD = `
  UPDATE device_login_requests SET told = $1 WHERE id IN (
    SELECT id FROM device_login_requests WHERE id = ANY ($2::uuid[]) FOR UPDATE SKIP LOCKED)`;

const FIND = `
  SELECT id, secret_hash, requested_at, expires_at, user_code, hostname, address FROM device_login_requests
  WHERE id = $1`;

const FORGET_DEVICE = `
  UPDATE device_login_requests
  SET user_code = NULL, hostname = NULL, address = NULL, step = 'remove', due_at = $2, revision = revision + 1
  WHERE id = $1 AND step = 'forget-device'`;

interface RequestRow {
  readonly id: DeviceSessionId;
  readonly secret_hash: string;
  readonly requested_at: string;
  readonly expires_at: string;
  readonly user_code: string | null;
  readonly hostname: Buffer | null;
  readonly address: string | null;
}

function toRequest(row: RequestRow): DeviceLoginRequest {
  const { id, user_code: userCode, hostname, address } = row;
  const forgotten = userCode === null || hostname === null || address === null;
  return {
    id,
    secretHash: row.secret_hash,
    requestedAt: timestamp(row.requested_at),
    expiresAt: timestamp(row.expires_at),
    device: forgotten ? null : { userCode, hostname: hostname.toString('utf8'), address },
  };
}
