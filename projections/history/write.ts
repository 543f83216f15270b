/**
 * What a batch changes in the tables of histories.
 *
 * Must stay true: a plain push is list statements only, which run as one; whatever is longer than one statement
 * should be, or must come first, runs before them in the same transaction.
 */
import type { ObjectId, RepositoryId } from '../../core/kernel/ids.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import { forAll } from '../runner/bulk.ts';
import type { ListStatement, Queryable, TableOf, Write } from '../runner/projection.ts';
import { commitEntry } from './entry.ts';
import { withReader } from './git-reading.ts';
import { READ_COMMITS_AT_ONCE, readCommits } from './new-commits.ts';
import type { RepositoryChange } from './fold.ts';
import type { RepositoryPlan } from './plan.ts';

export interface HistoryBatch {
  readonly gone: readonly RepositoryChange[];
  readonly plans: readonly RepositoryPlan[];
  readonly objects: Pick<ObjectDatabase, 'open'>;
}

/** A statement's list ends at whichever comes first. */
const ROWS_AT_ONCE = 5_000;
const CHARACTERS_AT_ONCE = 4 * 1024 * 1024;

export function historyWrite(table: TableOf, batch: HistoryBatch): Write {
  const { gone, plans } = batch;
  const statements = [
    headsOf(table, plans),
    ...refsOf(table, plans),
    layersOf(table, plans),
    { text: insertCommits(table), items: heldCommits(plans) },
    orderOf(table, plans),
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
  if (gone.length + shortened.length + walked.length + early.length === 0) return { lists };
  const before = async (transaction: Queryable): Promise<void> => {
    await removeRepositories(transaction, table, gone);
    await shortenOrders(transaction, table, shortened);
    for (const { text, items } of early) await forAll(transaction, items, text);
    for (const plan of walked) await writeWalk(transaction, table, batch.objects, plan);
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
    ordered_tip: bytea(after.orderedTip),
    ordered_commits: after.orderedCommits,
    incomplete: after.incomplete,
  }));
  const text = `INSERT INTO ${table('history_repositories')}
    SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid, initial_default_branch text,
      default_branch text, revision integer, ordered_tip bytea, ordered_commits integer, incomplete boolean)
    ON CONFLICT (repository_id) DO UPDATE SET
      initial_default_branch = excluded.initial_default_branch, default_branch = excluded.default_branch,
      revision = excluded.revision, ordered_tip = excluded.ordered_tip,
      ordered_commits = excluded.ordered_commits, incomplete = excluded.incomplete`;
  return { text, items };
}

function refsOf(table: TableOf, plans: readonly RepositoryPlan[]): readonly ListStatement[] {
  const deleted: { repository_id: string; name: string }[] = [];
  const moved: { repository_id: string; name: string; id: string | null; type: string; peeled: string | null }[] = [];
  for (const { change } of plans) {
    for (const [name, value] of change.refs) {
      const key = { repository_id: change.id, name };
      if (value === null) deleted.push(key);
      else moved.push({ ...key, id: bytea(value.id), type: value.type, peeled: bytea(value.peeled) });
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
        SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, name text, id bytea, type text, peeled bytea)
        ON CONFLICT (repository_id, name) DO UPDATE
          SET id = excluded.id, type = excluded.type, peeled = excluded.peeled`,
    },
  ];
}

function layersOf(table: TableOf, plans: readonly RepositoryPlan[]): ListStatement {
  const items = plans.flatMap(({ change, committed }) => {
    const before = committed.layers.length - change.layers.length;
    return change.layers.map((layer, index) => ({
      ...{ repository_id: change.id, number: before + index, id: layer.id, key: layer.key },
      ...{ size_bytes: layer.sizeBytes, sha256: layer.sha256, pack: layer.pack },
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

function orderOf(table: TableOf, plans: readonly RepositoryPlan[]): ListStatement {
  const items: { repository_id: RepositoryId; number: number; id: string | null }[] = [];
  for (const { change, order } of plans) {
    if (order.kind === 'keep') continue;
    const last = order.kept + order.ids.length - 1;
    for (const [index, id] of order.ids.entries()) {
      items.push({ repository_id: change.id, number: last - index, id: bytea(id) });
    }
  }
  const text = `INSERT INTO ${table('history_order')}
    SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, number integer, id bytea)`;
  return { text, items };
}

async function removeRepositories(
  transaction: Queryable,
  table: TableOf,
  gone: readonly RepositoryChange[],
): Promise<void> {
  const ids = 'SELECT value::uuid FROM json_array_elements_text($1)';
  const closed = gone.filter((change) => change.gone === 'closed').map(({ id }) => id);
  for (const name of ['repositories', 'refs', 'commits', 'order', 'layers']) {
    const text = `DELETE FROM ${table(`history_${name}`)} WHERE repository_id = ANY(ARRAY(${ids}))`;
    await forAll(transaction, closed, text);
  }
  const others = gone.filter((change) => change.gone !== 'closed').map(({ id }) => id);
  const repositories = table('history_repositories');
  // Its own stream may be under replay just now, and will end with the removal: that is not waited for.
  const free = `SELECT repository_id FROM ${repositories}
    WHERE repository_id = ANY(ARRAY(${ids})) FOR UPDATE SKIP LOCKED`;
  await forAll(transaction, others, `DELETE FROM ${repositories} WHERE repository_id IN (${free})`);
}

/** Takes away what is replaced, from the tip's end. */
async function shortenOrders(transaction: Queryable, table: TableOf, plans: readonly RepositoryPlan[]): Promise<void> {
  for (const { change, order } of plans) {
    if (order.kind === 'keep') continue;
    await transaction.query({
      text: `DELETE FROM ${table('history_order')} WHERE repository_id = $1 AND number >= $2`,
      values: [change.id, order.kept],
    });
  }
}

/** A history too long to hold: read and written piece by piece. */
async function writeWalk(
  transaction: Queryable,
  table: TableOf,
  objects: HistoryBatch['objects'],
  { change, commits: { walk }, committed }: RepositoryPlan,
): Promise<void> {
  if (walk === null) return;
  await withReader(objects, committed, async (reader) => {
    let ids: ObjectId[] = [];
    const flush = async (): Promise<void> => {
      const rows = (await readCommits(reader, ids)).map((commit) => ({
        ...{ repository_id: change.id, id: bytea(commit.id), entry: commitEntry(commit) },
      }));
      for (const part of partsOf(rows)) await forAll(transaction, part, insertCommits(table));
      ids = [];
    };
    for await (const id of reader.walk(walk)) {
      ids.push(id);
      if (ids.length === READ_COMMITS_AT_ONCE) await flush();
    }
    await flush();
  });
}

function bytea(id: ObjectId | null): string | null {
  return id === null ? null : `\\x${id}`;
}

/** A list in stretches that each fit a statement. Entries make up the size of what has them. */
function partsOf<Item>(items: readonly Item[]): (readonly Item[])[] {
  const parts: (readonly Item[])[] = [];
  let part: Item[] = [];
  let characters = 0;
  for (const item of items) {
    part.push(item);
    characters += entryLength(item);
    if (part.length < ROWS_AT_ONCE && characters < CHARACTERS_AT_ONCE) continue;
    parts.push(part);
    part = [];
    characters = 0;
  }
  if (part.length > 0) parts.push(part);
  return parts;
}

function entryLength(item: unknown): number {
  const hasEntry = typeof item === 'object' && item !== null && 'entry' in item && typeof item.entry === 'string';
  return hasEntry ? String(item.entry).length : 0;
}
