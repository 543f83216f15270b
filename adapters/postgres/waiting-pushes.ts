/** Pushes whose webhook deliveries wait for room, on PostgreSQL (core/ports/waiting-pushes.ts). */
import type pg from 'pg';
import type { LogPosition, StreamName } from '../../core/kernel/envelope.ts';
import type { AccountId, EventId } from '../../core/kernel/ids.ts';
import { DeliveryStoreError } from '../../core/ports/delivery-store.ts';
import type { WaitingPushes } from '../../core/ports/waiting-pushes.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(unavailable(DeliveryStoreError, 'delivery-store-unavailable'));

const PUT = `
  INSERT INTO webhook_waiting_pushes AS known (id, account_id, stream, revision, position, refs_done)
  VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (id) DO UPDATE SET refs_done = GREATEST(known.refs_done, excluded.refs_done), position = excluded.position`;

const EARLIEST = `
  SELECT id, account_id AS account, stream, revision, position::text, refs_done AS "refsDone"
  FROM webhook_waiting_pushes WHERE account_id = $1 ORDER BY webhook_waiting_pushes.position LIMIT $2`;

interface PushRow {
  readonly id: EventId;
  readonly account: AccountId;
  readonly stream: StreamName;
  readonly revision: number;
  readonly position: string;
  readonly refsDone: number;
}

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresWaitingPushes(pool: pg.Pool): WaitingPushes {
  return {
    async put({ id, account, stream, revision, position, refsDone }) {
      await query(pool, PUT, [id, account, stream, revision, String(position), refsDone]);
    },
    async earliest(account, limit) {
      const { rows } = await query<PushRow>(pool, EARLIEST, [account, limit]);
      return rows.map((row) => ({ ...row, position: BigInt(row.position) as LogPosition }));
    },
    async remove(id) {
      await query(pool, 'DELETE FROM webhook_waiting_pushes WHERE id = $1', [id]);
    },
    async accounts() {
      const text = 'SELECT DISTINCT account_id AS id FROM webhook_waiting_pushes';
      return (await query<{ id: AccountId }>(pool, text, [])).rows.map(({ id }) => id);
    },
    async forgetAccount(account) {
      await query(pool, 'DELETE FROM webhook_waiting_pushes WHERE account_id = $1', [account]);
    },
  };
}
