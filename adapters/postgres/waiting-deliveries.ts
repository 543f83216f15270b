/** Webhook deliveries that are still to be made, on PostgreSQL (core/ports/waiting-deliveries.ts). */
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId, Timestamp, WebhookDeliveryId } from '../../core/kernel/ids.ts';
import { DeliveryStoreError } from '../../core/ports/delivery-store.ts';
import type { PlacedRow, WaitingDeliveries, WaitingRow } from '../../core/ports/waiting-deliveries.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(unavailable(DeliveryStoreError, 'delivery-store-unavailable'));

const ADD = `
  INSERT INTO webhook_waiting_deliveries AS known
    (push_id, webhook_id, account_id, stream, revision, position, created_at, kinds, passed, waiting, keys)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
  ON CONFLICT (push_id, webhook_id) DO UPDATE
  SET passed = greatest(known.passed, excluded.passed), waiting = least(known.waiting, excluded.waiting)`;

const MOVE_ON = `
  WITH gone AS (DELETE FROM webhook_waiting_deliveries WHERE push_id = $1 AND webhook_id = $2 AND $4 = 0)
  UPDATE webhook_waiting_deliveries SET passed = $3, waiting = $4
  WHERE push_id = $1 AND webhook_id = $2 AND passed < $3 AND $4 > 0`;

const COLUMNS = `push_id AS push, webhook_id AS webhook, account_id AS account, stream, revision,
  position::text AS place, created_at AS "createdAt", kinds, passed, waiting`;

const EARLIEST = `
  SELECT ${COLUMNS} FROM webhook_waiting_deliveries WHERE account_id = $1 AND position = (
    SELECT min(first.position) FROM webhook_waiting_deliveries first WHERE first.account_id = $1)`;

/** The counts are of the account's rows; the caller picks some of these. */
const PLACED = `
  SELECT ${COLUMNS}, keys, position,
    coalesce(sum(waiting) OVER (
      ORDER BY position GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0)::int AS ahead,
    (count(*) OVER (PARTITION BY position))::int AS webhooks
  FROM webhook_waiting_deliveries WHERE account_id = $1`;

const SHOWN = `push, webhook, account, stream, revision, place, "createdAt", kinds, passed, waiting, ahead, webhooks`;

interface Place {
  readonly place: string;
}

function withPosition<Row extends Place>({ place, ...row }: Row): Omit<Row, 'place'> & Pick<WaitingRow, 'position'> {
  return { ...row, position: BigInt(place) as LogPosition };
}

/** The first 32 bits of an id, as PostgreSQL's integer holds them. */
function keyOf(delivery: WebhookDeliveryId): number {
  return Number.parseInt(delivery.slice(0, 8), 16) | 0;
}

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresWaitingDeliveries(pool: pg.Pool): WaitingDeliveries {
  const placed = async (text: string, values: readonly unknown[]): Promise<readonly PlacedRow[]> =>
    (
      await query<Omit<PlacedRow, 'position'> & Place>(pool, `SELECT ${SHOWN} FROM (${PLACED}) AS row ${text}`, values)
    ).rows.map(withPosition);
  return {
    async add(row, deliveries) {
      const { push, webhook, account, stream, revision, position, createdAt, kinds, passed, waiting } = row;
      const place = [push, webhook, account, stream, revision, String(position)];
      await query(pool, ADD, [...place, createdAt, kinds, passed, waiting, deliveries.map(keyOf)]);
    },
    async moveOn(push, webhook, { passed, waiting }) {
      await query(pool, MOVE_ON, [push, webhook, passed, waiting]);
    },
    async earliest(account) {
      return (await query<Omit<WaitingRow, 'position'> & Place>(pool, EARLIEST, [account])).rows.map(withPosition);
    },
    newest: (account, webhook, limit) =>
      placed('WHERE webhook = $2 ORDER BY position DESC LIMIT $3', [account, webhook, limit]),
    mayHold: (account, webhook, delivery) =>
      placed('WHERE webhook = $2 AND $3::integer = ANY (keys) LIMIT 10', [account, webhook, keyOf(delivery)]),
    async load(account, least) {
      const text = `SELECT coalesce(sum(greatest(waiting, $2)), 0)::int AS load
        FROM webhook_waiting_deliveries WHERE account_id = $1`;
      return (await query<{ load: number }>(pool, text, [account, least])).rows[0]?.load ?? 0;
    },
    async backlog() {
      const text = `SELECT coalesce(sum(waiting), 0)::float8 AS pending, min(created_at) AS "oldestAt"
        FROM webhook_waiting_deliveries`;
      const { rows } = await query<{ pending: number; oldestAt: Timestamp | null }>(pool, text, []);
      return rows[0] ?? { pending: 0, oldestAt: null };
    },
    async accounts() {
      const text = 'SELECT DISTINCT account_id AS id FROM webhook_waiting_deliveries';
      return (await query<{ id: AccountId }>(pool, text, [])).rows.map(({ id }) => id);
    },
    async forgetWebhook(account, webhook) {
      const text = 'DELETE FROM webhook_waiting_deliveries WHERE account_id = $1 AND webhook_id = $2';
      await query(pool, text, [account, webhook]);
    },
    async forgetAccount(account) {
      await query(pool, 'DELETE FROM webhook_waiting_deliveries WHERE account_id = $1', [account]);
    },
  };
}
