/**
 * Turns the plans of a batch into statements on the history tables.
 *
 * Invariants: an ordinary push needs list statements only, which run as one. Whatever is too long for one
 * statement, or must come first, runs before them in the same transaction.
 */
import type { ObjectId, RepositoryId } from '../../core/kernel/ids.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import { runForList } from '../runner/bulk.ts';
import type { ListStatement, Queryable, TableOf, Write } from '../runner/projection.ts';
import { commitEntry } from './entry.ts';
import type { RepositoryChange } from './fold.ts';
import { type HistoryReader, withReader } from './git-reading.ts';
import { readListedCommits } from './new-commits.ts';
import { faultOf, type RepositoryPlan } from './plan.ts';

export interface HistoryBatch {
  readonly removed: readonly RepositoryChange[];
  readonly plans: readonly RepositoryPlan[];
  readonly objects: Pick<ObjectDatabase, 'open'>;
  /** The time limit for histories that are read while they are written. */
  readonly spanMs: number;
}

const READ_COMMITS_AT_ONCE = 500;
/** A statement's list ends at whichever of these two limits it reaches first. */
const ROWS_AT_ONCE = 5_000;
const CHARACTERS_AT_ONCE = 4 * 1024 * 1024;

export function historyWrite(table: TableOf, batch: HistoryBatch): Write {
  const { removed, plans } = batch;
  const isLong = ({ order }: RepositoryPlan): boolean => order.kind === 'replace' && order.ids.length > ROWS_AT_ONCE;
  const short = plans.filter((plan) => !isLong(plan));
  const ordered = plans.filter(isLong);
  const statements = [
    headsOf(table, plans),
    ...refsOf(table, plans),
    layersOf(table, plans),
    { text: insertCommits(table), items: heldCommits(plans) },
    { text: insertOrder(table), items: short.flatMap((plan) => orderRows(plan, 0, ROWS_AT_ONCE)) },
  ];
  const lists: ListStatement[] = [];
  const early: ListStatement[] = [];
  for (const { text, items } of statements) {
    const parts = partsOf(items);
    const last = parts.pop();
    if (last !== undefined) lists.push({ text, items: last });
    for (const part of parts) early.push({ text, items: part });
  }
  const shortened = plans.filter(
    ({ before, order }) => order.kind === 'replace' && order.kept < (before?.orderedCommits ?? 0),
  );
  const walked = plans.filter(({ commits }) => commits.walk !== null);
  const returned = plans.filter(({ change }) => change.returned !== null);
  const compacted = plans.filter(({ change, layersKept }) => change.returned === null && layersKept === null);
  const changed = [removed, returned, compacted, shortened, walked, ordered, early];
  if (changed.every((some) => some.length === 0)) return { lists };
  const before = async (transaction: Queryable): Promise<void> => {
    await removeRepositories(transaction, table, removed);
    await removeRows(
      transaction,
      table,
      ALL_TABLES,
      returned.map(({ change }) => change.id),
    );
    await removeRows(
      transaction,
      table,
      ['layers'],
      compacted.map(({ change }) => change.id),
    );
    await shortenOrders(transaction, table, shortened);
    for (const { text, items } of early) await runForList(transaction, items, text);
    for (const plan of ordered) await writeOrder(transaction, table, plan);
    for (const plan of walked) await writeWalk(transaction, table, batch, plan);
  };
  return { lists, before };
}

function headsOf(table: TableOf, plans: readonly RepositoryPlan[]): ListStatement {
  const items = plans.map(({ change, after }) => ({
    repository_id: change.id,
    account_id: after.accountId,
    initial_default_branch: after.initialDefaultBranch,
    default_branch: after.defaultBranch,
    revision: after.revision,
    storage_bucket_id: after.storageBucketId,
    shrink_epoch: after.shrinkEpoch,
    ordered_tip: bytea(after.orderedTip),
    ordered_commits: after.orderedCommits,
    incomplete: after.incomplete,
  }));
  const text = `INSERT INTO ${table('history_repositories')}
    SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid, initial_default_branch text,
      default_branch text, revision integer, storage_bucket_id uuid, shrink_epoch integer, ordered_tip bytea, ordered_commits integer, incomplete boolean)
    ON CONFLICT (repository_id) DO UPDATE SET
      initial_default_branch = excluded.initial_default_branch, default_branch = excluded.default_branch,
      revision = excluded.revision, storage_bucket_id = excluded.storage_bucket_id,
      shrink_epoch = excluded.shrink_epoch, ordered_tip = excluded.ordered_tip,
      ordered_commits = excluded.ordered_commits, incomplete = excluded.incomplete`;
  return { text, items };
}

/** Refs of one repository, column by column: for one row each, PostgreSQL would look up every column's name again. */
interface MovedRefs {
  readonly repository_id: RepositoryId;
  readonly names: string[];
  readonly ids: string[];
  readonly types: string[];
  readonly peeled: (string | null)[];
}

function refsOf(table: TableOf, plans: readonly RepositoryPlan[]): readonly ListStatement[] {
  const deleted: { repository_id: string; name: string }[] = [];
  const moved: MovedRefs[] = [];
  for (const { change } of plans) {
    let run: MovedRefs | null = null;
    for (const [name, value] of change.refs) {
      if (value === null) {
        deleted.push({ repository_id: change.id, name });
        continue;
      }
      if (run === null || run.names.length === ROWS_AT_ONCE) {
        run = { repository_id: change.id, names: [], ids: [], types: [], peeled: [] };
        moved.push(run);
      }
      run.names.push(name);
      run.ids.push(value.id);
      run.types.push(value.type);
      run.peeled.push(value.peeled);
    }
  }
  const refs = table('history_refs');
  return [
    {
      items: deleted,
      text: `DELETE FROM ${refs} AS r USING json_to_recordset($1) AS d(repository_id uuid, name text)
        WHERE r.repository_id = d.repository_id AND r.name = d.name`,
    },
    {
      items: moved,
      text: `INSERT INTO ${refs}
        SELECT m.repository_id, r.name, decode(r.id, 'hex'), r.type, decode(r.peeled, 'hex')
        FROM json_to_recordset($1) AS m(repository_id uuid, names text[], ids text[], types text[], peeled text[]),
          unnest(m.names, m.ids, m.types, m.peeled) AS r(name, id, type, peeled)
        ON CONFLICT (repository_id, name) DO UPDATE
          SET id = excluded.id, type = excluded.type, peeled = excluded.peeled`,
    },
  ];
}

function layersOf(table: TableOf, plans: readonly RepositoryPlan[]): ListStatement {
  const items = plans.flatMap(({ change, committed, layersKept }) => {
    const first = layersKept ?? 0;
    return [...committed.layers].slice(first).map((layer, index) => ({
      repository_id: change.id,
      number: first + index,
      id: layer.id,
      key: layer.key,
      size_bytes: layer.sizeBytes,
      sha256: layer.sha256,
      pack: layer.pack,
    }));
  });
  const text = `INSERT INTO ${table('history_layers')} SELECT * FROM json_to_recordset($1)
    AS r(repository_id uuid, number integer, id uuid, key text, size_bytes bigint, sha256 text, pack text)`;
  return { text, items };
}

interface CommitRecord {
  readonly repository_id: RepositoryId;
  readonly id: string | null;
  readonly entry: string;
}

function insertCommits(table: TableOf): string {
  return `INSERT INTO ${table('history_commits')}
    SELECT * FROM json_to_recordset($1) AS c(repository_id uuid, id bytea, entry text)
    ON CONFLICT DO NOTHING`;
}

function heldCommits(plans: readonly RepositoryPlan[]): readonly CommitRecord[] {
  return plans.flatMap(({ change, commits }) =>
    commits.commits.map((commit) => ({ repository_id: change.id, id: bytea(commit.id), entry: commitEntry(commit) })),
  );
}

interface OrderRow {
  readonly repository_id: RepositoryId;
  readonly number: number;
  readonly id: string | null;
}

/** Returns a range of a new order's rows, counted from the tip. */
function orderRows({ change, order }: RepositoryPlan, start: number, limit: number): readonly OrderRow[] {
  if (order.kind === 'keep') return [];
  const last = order.kept + order.ids.length - 1;
  return order.ids.slice(start, start + limit).map((id, index) => ({
    repository_id: change.id,
    number: last - start - index,
    id: bytea(id),
  }));
}

function insertOrder(table: TableOf): string {
  return `INSERT INTO ${table('history_order')}
    SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, number integer, id bytea)`;
}

/** Writes a long order range by range: all rows together would take several times the memory of the ids. */
async function writeOrder(transaction: Queryable, table: TableOf, plan: RepositoryPlan): Promise<void> {
  const count = plan.order.kind === 'keep' ? 0 : plan.order.ids.length;
  for (let start = 0; start < count; start += ROWS_AT_ONCE) {
    await runForList(transaction, orderRows(plan, start, ROWS_AT_ONCE), insertOrder(table));
  }
}

const IDS = 'SELECT value::uuid FROM json_array_elements_text($1)';
const ALL_TABLES = ['repositories', 'refs', 'commits', 'order', 'layers'] as const;

async function removeRows(
  transaction: Queryable,
  table: TableOf,
  names: readonly (typeof ALL_TABLES)[number][],
  ids: readonly RepositoryId[],
): Promise<void> {
  if (ids.length === 0) return;
  for (const name of names) {
    const text = `DELETE FROM ${table(`history_${name}`)} WHERE repository_id = ANY(ARRAY(${IDS}))`;
    await runForList(transaction, ids, text);
  }
}

async function removeRepositories(
  transaction: Queryable,
  table: TableOf,
  removed: readonly RepositoryChange[],
): Promise<void> {
  const closed = removed.filter((change) => change.removed === 'closed').map(({ id }) => id);
  await removeRows(transaction, table, ALL_TABLES, closed);
  const others = removed.filter((change) => change.removed !== 'closed').map(({ id }) => id);
  const repositories = table('history_repositories');
  // If the repository's own stream is being replayed, that replay deletes the row: do not wait for its lock.
  const free = `SELECT repository_id FROM ${repositories}
    WHERE repository_id = ANY(ARRAY(${IDS})) FOR UPDATE SKIP LOCKED`;
  await runForList(transaction, others, `DELETE FROM ${repositories} WHERE repository_id IN (${free})`);
}

/** Deletes the rows at the tip's end that the new order replaces. */
async function shortenOrders(transaction: Queryable, table: TableOf, plans: readonly RepositoryPlan[]): Promise<void> {
  for (const { change, order } of plans) {
    if (order.kind === 'keep') continue;
    await transaction.query({
      text: `DELETE FROM ${table('history_order')} WHERE repository_id = $1 AND number >= $2`,
      values: [change.id, order.kept],
    });
  }
}

/** Reads and writes piece by piece a history that is too long to hold. Only patient work does so. */
async function writeWalk(
  transaction: Queryable,
  table: TableOf,
  { objects, spanMs }: HistoryBatch,
  { change, commits: { walk }, committed }: RepositoryPlan,
): Promise<void> {
  if (walk === null) return;
  const rows = new CommitRows(transaction, insertCommits(table));
  const write = async (reader: HistoryReader, ids: readonly ObjectId[]): Promise<void> => {
    for await (const commit of readListedCommits(reader, ids)) {
      await rows.add({ repository_id: change.id, id: bytea(commit.id), entry: commitEntry(commit) });
    }
  };
  try {
    await withReader(objects, committed, spanMs, async (reader) => {
      let ids: ObjectId[] = [];
      for await (const id of reader.walk(walk)) {
        ids.push(id);
        if (ids.length < READ_COMMITS_AT_ONCE) continue;
        await write(reader, ids);
        ids = [];
      }
      await write(reader, ids);
    });
  } catch (error) {
    throw faultOf(change, error, true);
  }
  await rows.flush();
}

/** Collects rows until they fill one statement. */
class CommitRows {
  readonly #transaction: Queryable;
  readonly #text: string;
  #rows: CommitRecord[] = [];
  #characters = 0;

  constructor(transaction: Queryable, text: string) {
    this.#transaction = transaction;
    this.#text = text;
  }

  async add(row: CommitRecord): Promise<void> {
    this.#rows.push(row);
    this.#characters += row.entry.length;
    if (this.#rows.length === ROWS_AT_ONCE || this.#characters >= CHARACTERS_AT_ONCE) await this.flush();
  }

  async flush(): Promise<void> {
    const rows = this.#rows;
    this.#rows = [];
    this.#characters = 0;
    await runForList(this.#transaction, rows, this.#text);
  }
}

function bytea(id: ObjectId | null): string | null {
  return id === null ? null : `\\x${id}`;
}

/** Splits a list into parts that each fit a statement. Only `entry` counts as size: it makes up most of a row. */
function partsOf<Item>(items: readonly Item[]): (readonly Item[])[] {
  const parts: (readonly Item[])[] = [];
  let part: Item[] = [];
  let rows = 0;
  let characters = 0;
  for (const item of items) {
    const added = rowsOf(item);
    const isFull = rows + added > ROWS_AT_ONCE || characters >= CHARACTERS_AT_ONCE;
    if (isFull && part.length > 0) {
      parts.push(part);
      part = [];
      rows = 0;
      characters = 0;
    }
    part.push(item);
    rows += added;
    characters += entryLength(item);
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

function rowsOf(item: unknown): number {
  const hasNames = typeof item === 'object' && item !== null && 'names' in item && Array.isArray(item.names);
  return hasNames ? (item.names as readonly unknown[]).length : 1;
}

function entryLength(item: unknown): number {
  const hasEntry = typeof item === 'object' && item !== null && 'entry' in item && typeof item.entry === 'string';
  return hasEntry ? String(item.entry).length : 0;
}
