/**
 * Folds deliveries' streams into one row for each delivery.
 *
 * Invariants: a row holds what events say, and nothing of the sent or received bodies. A row that says an attempt
 * is due is only a hint: the delivery's own stream decides.
 */
import { entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { prepared } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { foldDelivery, type StoredDelivery } from './fold.ts';
import { webhookDeliveryTables } from './table.ts';

export const webhookDeliveriesProjection: Projection = {
  name: 'webhook_deliveries',
  version: 3,
  categories: ['webhookDelivery'],
  tables: webhookDeliveryTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events, database) => toWrite(table, await fold(table, events, database)),
  }),
};

async function fold(
  table: TableOf,
  events: readonly RecordedEvent[],
  database: Queryable,
): Promise<ReadonlyMap<string, StoredDelivery>> {
  const ids = new Set(events.map(({ stream }) => entityIdOf(stream)));
  const requested = new Set(events.filter(({ revision }) => revision === 0).map(({ stream }) => entityIdOf(stream)));
  const known = [...ids].filter((id) => !requested.has(id));
  const rows = new Map<string, StoredDelivery>();
  if (known.length > 0) {
    const text = `SELECT * FROM ${table('webhook_deliveries')} WHERE id = ANY ($1::uuid[])`;
    for (const row of (await database.query(prepared(text, [known]))).rows) {
      const stored = parseRow(row);
      rows.set(stored.id, stored);
    }
  }
  for (const event of events) {
    const id = entityIdOf(event.stream);
    rows.set(id, foldDelivery(rows.get(id) ?? null, event));
  }
  return rows;
}

/** Parses a row of this model's own table, as `toWrite` wrote it. */
function parseRow(row: object): StoredDelivery {
  return row as StoredDelivery;
}

const COLUMNS = `id uuid, account_id uuid, webhook_id uuid, event_id uuid, event text, repository_id uuid, status text,
  series integer, created_at text, next_attempt_at text, due_since text, deferred_until text, is_first boolean, attempt_log json,
  position bigint`;

function toWrite(table: TableOf, rows: ReadonlyMap<string, StoredDelivery>): Write {
  return {
    lists: [
      {
        items: [...rows.values()],
        text: `INSERT INTO ${table('webhook_deliveries')} SELECT * FROM json_to_recordset($1) AS r(${COLUMNS})
          ON CONFLICT (id) DO UPDATE SET status = excluded.status, series = excluded.series,
            next_attempt_at = excluded.next_attempt_at, due_since = excluded.due_since,
            deferred_until = excluded.deferred_until, is_first = excluded.is_first,
            attempt_log = excluded.attempt_log`,
      },
    ],
  };
}
