/**
 * Counts the changes of each account by the month (UTC) of their first event.
 *
 * Invariants: what an event holds is not interpreted, so that none of any version can stop the model. A request counts
 * once in whatever batches its events come, as long as `CHANGE_REQUEST_KNOWN_MS` does not pass between them.
 */
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import { later, plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import { isOfChange } from '../../core/usage/changes.ts';
import { RECORD_CATEGORIES } from '../record-categories.ts';
import type { Projection, TableOf, Write } from '../runner/projection.ts';
import { CHANGE_REQUEST_KNOWN_MS } from './limits.ts';
import { MONTHS, REQUESTS } from './table.ts';

export const changesProjection: Projection = {
  name: 'changes',
  version: 1,
  categories: RECORD_CATEGORIES,
  tables: [MONTHS, REQUESTS],
  onPoison: 'halt',
  asStored: true,
  open: (table) => {
    let removedFrom: Timestamp | null = null;
    return {
      prepare: async (events) => {
        const requests = requestsOf(events.filter(isOfChange));
        const newest = requests.reduce((latest: Timestamp | null, { at }) => later(at, latest), null);
        const isDue = newest !== null && (removedFrom === null || newest > plusMs(removedFrom, REMOVED_EACH_MS));
        const aged = isDue ? [{ before: plusMs(newest, -CHANGE_REQUEST_KNOWN_MS) }] : [];
        return {
          ...toWrite(table, requests, aged),
          committed: () => void (removedFrom = isDue ? newest : removedFrom),
        };
      },
    };
  },
};

/** How often rows that are too old are looked for, by the time of events. */
const REMOVED_EACH_MS = 60_000;

interface RequestRow {
  readonly account_id: string;
  readonly request_id: string;
  readonly at: Timestamp;
}

function requestsOf(events: readonly RecordedEvent[]): readonly RequestRow[] {
  const rows = new Map<string, RequestRow>();
  for (const { accountId, requestId, occurredAt } of events) {
    const key = `${accountId} ${requestId}`;
    if (!rows.has(key)) rows.set(key, { account_id: String(accountId), request_id: requestId, at: occurredAt });
  }
  return [...rows.values()];
}

const ROWS = 'json_to_recordset($1) AS r(account_id uuid, request_id text, at text)';

/** Both of the first two see which requests were known before. */
function toWrite(table: TableOf, items: readonly RequestRow[], aged: readonly { readonly before: Timestamp }[]): Write {
  const requests = table(REQUESTS.name);
  return {
    lists: [
      { items, text: `INSERT INTO ${requests} SELECT * FROM ${ROWS} ON CONFLICT DO NOTHING` },
      {
        items,
        text: `INSERT INTO ${table(MONTHS.name)} AS m
            SELECT account_id, left(at, 7), count(*) FROM ${ROWS}
            WHERE NOT EXISTS (SELECT FROM ${requests} AS k
              WHERE k.account_id = r.account_id AND k.request_id = r.request_id)
            GROUP BY 1, 2
            ON CONFLICT (account_id, month) DO UPDATE SET changes = m.changes + excluded.changes`,
      },
      {
        items: aged,
        text: `DELETE FROM ${requests} USING json_to_recordset($1) AS r(before text) WHERE at < r.before`,
      },
    ],
  };
}
