/**
 * Removes the rows that were made from streams which were pruned from the log, from every generation of their model.
 *
 * Invariants: only a row whose stream the log no longer has is removed, so that a rebuild compares equal. It can be
 * repeated: a generation that was built from events that were pruned since is cleaned the next time.
 */
import { createConcurrencyLimit } from '../../core/kernel/concurrency-limit.ts';
import type { StreamName } from '../../core/kernel/envelope.ts';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Projection, Queryable } from './projection.ts';
import { tablesExist } from './tables.ts';

export interface PrunedRowsContext {
  readonly database: Queryable;
  readonly events: Pick<EventStore, 'readStream'>;
}

/** The rows of a model's table that are from operational streams. */
export interface PrunableRows {
  readonly model: Pick<Projection, 'name'>;
  readonly table: string;
  /** Before every key. */
  readonly firstKey: string;
  /** Selects `key` and `stream`, in the order of keys: those after the key `$1` that are older than the time `$2`. */
  readonly page: (table: string, limit: number) => string;
  /** Deletes the rows with these keys (`$1`, a list of texts), all of which are of pruned streams. */
  readonly remove: (table: string) => string;
}

const ROWS_AT_ONCE = 1_000;
const STREAMS_AT_ONCE = 8;

/** Looks at the rows that are older than a time. Resolves early when the signal is aborted. */
export async function removePrunedRows(
  context: PrunedRowsContext,
  rows: PrunableRows,
  before: Timestamp,
  signal: { readonly aborted: boolean },
): Promise<void> {
  for (const table of await generationTables(context.database, rows)) {
    await cleanTable(context, rows, { table, before, signal });
  }
}

async function generationTables(database: Queryable, { model, table }: PrunableRows): Promise<readonly string[]> {
  if (!(await tablesExist(database, ['read_models.checkpoints']))) return [];
  const { rows } = await database.query({
    text: 'SELECT unnest(tables) AS name FROM read_models.checkpoints WHERE name = $1',
    values: [model.name],
  });
  const generation = new RegExp(`^read_models\\.${table}_v[0-9]+_[0-9]+$`);
  const names: string[] = [];
  for (const { name } of rows) {
    if (typeof name !== 'string' || !generation.test(name)) continue;
    if (await tablesExist(database, [name])) names.push(name);
  }
  return names;
}

interface Cleaning {
  readonly table: string;
  readonly before: Timestamp;
  readonly signal: { readonly aborted: boolean };
}

async function cleanTable(
  { database, events }: PrunedRowsContext,
  { firstKey, page, remove }: PrunableRows,
  { table, before, signal }: Cleaning,
): Promise<void> {
  const limited = createConcurrencyLimit(STREAMS_AT_ONCE);
  const isGone = async (stream: StreamName): Promise<boolean> =>
    (await events.readStream(stream, { direction: 'forwards', limit: 1 })).length === 0;
  for (let after = firstKey; !signal.aborted; ) {
    const { rows } = await database.query({ text: page(table, ROWS_AT_ONCE), values: [after, before] });
    const found = rows.map(({ key, stream }) => ({ key: String(key), stream: String(stream) as StreamName }));
    const streams = [...new Set(found.map(({ stream }) => stream))];
    const gone = new Set<StreamName>();
    await Promise.all(streams.map((stream) => limited(async () => (await isGone(stream)) && gone.add(stream))));
    const keys = found.flatMap(({ key, stream }) => (gone.has(stream) ? [key] : []));
    if (keys.length > 0) await database.query({ text: remove(table), values: [keys] });
    const last = found.at(-1);
    if (last === undefined || found.length < ROWS_AT_ONCE) return;
    after = last.key;
  }
}
