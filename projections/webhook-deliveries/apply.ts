/**
 * Folds deliveries' streams into one row for each.
 *
 * Must stay true: it holds what events say and nothing that was sent or answered; what is due by it is decided on the
 * delivery's own stream.
 */
import { readEvent } from '../../core/kernel/decider.ts';
import { entityIdOf, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { plusMs, timestamp } from '../../core/kernel/ids.ts';
import { WEBHOOK_RETRY_WAITS_MS } from '../../core/kernel/limits.ts';
import type { AttemptRow, WebhookDeliveryRow } from '../../core/ports/read-models.ts';
import { type WebhookDeliveryEvent, webhookDeliveryEventKinds } from '../../core/webhook-delivery/events.ts';
import { prepared } from '../runner/bulk.ts';
import type { Projection, Queryable, TableOf, Write } from '../runner/projection.ts';
import { webhookDeliveryTables } from './table.ts';

export const webhookDeliveriesProjection: Projection = {
  name: 'webhook_deliveries',
  version: 1,
  categories: ['webhookDelivery'],
  tables: webhookDeliveryTables,
  onPoison: 'park',
  open: (table) => ({
    prepare: async (events, database) => toWrite(table, await fold(table, events, database)),
  }),
};

interface StoredRow {
  readonly id: string;
  readonly account_id: string | null;
  readonly webhook_id: string;
  readonly event_id: string;
  readonly event: WebhookDeliveryRow['event'];
  readonly repository_id: string | null;
  readonly status: WebhookDeliveryRow['status'];
  readonly series: number;
  readonly created_at: string;
  readonly next_attempt_at: string | null;
  readonly due_at: string | null;
  readonly is_first: boolean;
  readonly attempt_log: readonly AttemptRow[];
  readonly position: string;
}

async function fold(
  table: TableOf,
  events: readonly RecordedEvent[],
  database: Queryable,
): Promise<ReadonlyMap<string, StoredRow>> {
  const ids = new Set(events.map(({ stream }) => entityIdOf(stream)));
  const requested = new Set(events.filter(({ revision }) => revision === 0).map(({ stream }) => entityIdOf(stream)));
  const known = [...ids].filter((id) => !requested.has(id));
  const rows = new Map<string, StoredRow>();
  if (known.length > 0) {
    const text = `SELECT * FROM ${table('webhook_deliveries')} WHERE id = ANY ($1::uuid[])`;
    for (const row of (await database.query(prepared(text, [known]))).rows) {
      const stored = parseRow(row);
      rows.set(stored.id, stored);
    }
  }
  for (const event of events) {
    const id = entityIdOf(event.stream);
    rows.set(id, evolve(rows.get(id) ?? null, event));
  }
  return rows;
}

/** Rows of our own table, as `toWrite` wrote them. */
function parseRow(row: object): StoredRow {
  return row as StoredRow;
}

function evolve(row: StoredRow | null, recorded: RecordedEvent): StoredRow {
  const event = readEvent<WebhookDeliveryEvent>(webhookDeliveryEventKinds, recorded);
  const { occurredAt } = recorded;
  if (event.type === 'WebhookDeliveryRequested') {
    const { payload_sha256: _digest, ...facts } = event.data;
    return {
      ...{ id: entityIdOf(recorded.stream), account_id: recorded.accountId, ...facts },
      ...{ status: 'PENDING', series: 1, created_at: occurredAt, next_attempt_at: occurredAt, due_at: occurredAt },
      ...{ is_first: true, attempt_log: [], position: String(recorded.position) },
    };
  }
  if (row === null) throw new TypeError(`${recorded.stream} does not begin with a request`);
  switch (event.type) {
    case 'WebhookDeliveryAttemptClaimed':
      return { ...row, due_at: event.data.until };
    case 'WebhookDeliveryAttempted': {
      const { attempt, started_at: at, duration_ms: durationMs, http_status: httpStatus, error, detail } = event.data;
      const { series } = event.data;
      const made: AttemptRow = { series, attempt, at: timestamp(at), durationMs, httpStatus, error, detail };
      // From the end of the attempt (spec, Delivery behavior).
      const next = plusMs(timestamp(at), durationMs + (WEBHOOK_RETRY_WAITS_MS[attempt - 1] ?? 0));
      const attempt_log = [...row.attempt_log, made];
      return { ...row, attempt_log, next_attempt_at: next, due_at: next, is_first: false };
    }
    case 'WebhookDeliverySucceeded':
      return { ...row, status: 'SUCCESS', next_attempt_at: null, due_at: null };
    case 'WebhookDeliveryFailed':
      return { ...row, status: 'FAILED', next_attempt_at: null, due_at: null };
    case 'WebhookRedelivered': {
      const { series } = event.data;
      return { ...row, series, status: 'PENDING', next_attempt_at: occurredAt, due_at: occurredAt };
    }
  }
}

const COLUMNS = `id uuid, account_id uuid, webhook_id uuid, event_id uuid, event text, repository_id uuid, status text,
  series integer, created_at text, next_attempt_at text, due_at text, is_first boolean, attempt_log json,
  position bigint`;

function toWrite(table: TableOf, rows: ReadonlyMap<string, StoredRow>): Write {
  return {
    lists: [
      {
        items: [...rows.values()],
        text: `INSERT INTO ${table('webhook_deliveries')} SELECT * FROM json_to_recordset($1) AS r(${COLUMNS})
          ON CONFLICT (id) DO UPDATE SET status = excluded.status, series = excluded.series,
            next_attempt_at = excluded.next_attempt_at, due_at = excluded.due_at, is_first = excluded.is_first,
            attempt_log = excluded.attempt_log`,
      },
    ],
  };
}
