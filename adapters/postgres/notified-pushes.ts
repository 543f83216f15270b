/** Which pushes webhooks were notified of, on PostgreSQL (core/ports/notified-pushes.ts). */
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { DeliveryStoreError } from '../../core/ports/delivery-store.ts';
import type { NotifiedPushesStore } from '../../core/ports/notified-pushes.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(unavailable(DeliveryStoreError, 'delivery-store-unavailable'));

const SAVE = `
  INSERT INTO webhook_notified_pushes (reached, undone) VALUES ($1, $2)
  ON CONFLICT (is_only) DO UPDATE SET reached = excluded.reached, undone = excluded.undone`;

const REACHED = `
  SELECT least(reached, (undone ->> $1)::bigint - 1)::text AS reached FROM webhook_notified_pushes`;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresNotifiedPushes(pool: pg.Pool): NotifiedPushesStore {
  return {
    async save({ reached, undone }) {
      const positions = [...undone].map(([account, position]) => [account, String(position)] as const);
      await query(pool, SAVE, [String(reached), JSON.stringify(Object.fromEntries(positions))]);
    },
    async reachedFor(account) {
      const { rows } = await query<{ reached: string }>(pool, REACHED, [account]);
      return rows[0] === undefined ? null : (BigInt(rows[0].reached) as LogPosition);
    },
  };
}
