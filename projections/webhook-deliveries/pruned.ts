/**
 * Removes the rows of deliveries whose streams were pruned from the log, from every generation of the model.
 *
 * Must stay true: only a row whose stream the log no longer has is removed, so that a rebuild compares equal. It can be
 * repeated: a generation that was built from events that were pruned meanwhile is cleaned the next time.
 */
import { streamName } from '../../core/kernel/envelope.ts';
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Queryable } from '../runner/projection.ts';
import { tablesExist } from '../runner/tables.ts';
import { webhookDeliveriesProjection as model } from './apply.ts';

export interface PrunedDeliveriesContext {
  readonly database: Queryable;
  readonly events: Pick<EventStore, 'readStream'>;
}

const ROWS_AT_ONCE = 1_000;
const STREAMS_AT_ONCE = 8;
const TABLE = /^read_models\.webhook_deliveries_v[0-9]+_[0-9]+$/;

/** Looks at the deliveries that were created before. Resolves early when the signal is aborted. */
export async function removePrunedDeliveries(
  context: PrunedDeliveriesContext,
  before: Timestamp,
  signal: { readonly aborted: boolean },
): Promise<void> {
  for (const table of await generationTables(context.database)) await cleanTable(context, table, before, signal);
}

async function generationTables(database: Queryable): Promise<readonly string[]> {
  if (!(await tablesExist(database, ['read_models.checkpoints']))) return [];
  const { rows } = await database.query({
    text: 'SELECT unnest(tables) AS name FROM read_models.checkpoints WHERE name = $1',
    values: [model.name],
  });
  const names: string[] = [];
  for (const { name } of rows) {
    if (typeof name !== 'string' || !TABLE.test(name))
      throw new TypeError(`Not a table of deliveries: ${String(name)}`);
    if (await tablesExist(database, [name])) names.push(name);
  }
  return names;
}

async function cleanTable(
  { database, events }: PrunedDeliveriesContext,
  table: string,
  before: Timestamp,
  signal: { readonly aborted: boolean },
): Promise<void> {
  const limited = createConcurrencyLimit(STREAMS_AT_ONCE);
  const isGone = async (id: string): Promise<boolean> => {
    const stream = streamName('webhookDelivery', id);
    return (await events.readStream(stream, { direction: 'forwards', limit: 1 })).length === 0;
  };
  for (let after = '00000000-0000-0000-0000-000000000000'; !signal.aborted; ) {
    const { rows } = await database.query({
      text: `SELECT id FROM ${table} WHERE id > $1 AND created_at < $2 ORDER BY id LIMIT ${ROWS_AT_ONCE}`,
      values: [after, before],
    });
    const ids = rows.map(({ id }) => String(id));
    const gone = await Promise.all(ids.map((id) => limited(() => isGone(id))));
    await database.query({
      text: `DELETE FROM ${table} WHERE id = ANY ($1::uuid[])`,
      values: [ids.filter((_, index) => gone[index] === true)],
    });
    const last = ids.at(-1);
    if (last === undefined || ids.length < ROWS_AT_ONCE) return;
    after = last;
  }
}
