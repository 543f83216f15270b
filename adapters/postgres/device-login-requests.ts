/**
 * The requests of device logins on PostgreSQL (core/ports/device-login-requests.ts), which are also the rows of the
 * workflow that ends them.
 *
 * Invariants: each call is one statement, so a process that dies leaves no lock and nothing half. A row's revision
 * changes with its step.
 */
import type pg from 'pg';
import { type DeviceSessionId, timestamp } from '../../core/kernel/ids.ts';
import {
  type DeviceLoginRequest,
  type DeviceLoginRequests,
  DeviceLoginRequestsError,
  type DeviceRequestStep,
} from '../../core/ports/device-login-requests.ts';
import type { OverdueTimers, WaitingRows } from '../../core/ports/workflows.ts';
import { queryReporting, unavailable } from './outages.ts';
import { createWaitingRows } from './waiting-rows.ts';

const query = queryReporting(unavailable(DeviceLoginRequestsError, 'device-logins-unavailable'));

export type PostgresDeviceLoginRequests = DeviceLoginRequests & OverdueTimers & WaitingRows<DeviceRequestStep>;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresDeviceLoginRequests(pool: pg.Pool): PostgresDeviceLoginRequests {
  return {
    ...requestsOn(pool),
    ...createWaitingRows<DeviceRequestStep>({ pool, query, table: 'device_login_requests', step: 'step' }),
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
