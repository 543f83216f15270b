/**
 * Writes what a batch means for the repositories' histories.
 *
 * Must stay true: everything happens in the transaction it is given; lists go in statements of bounded size.
 */
import type { CommittedObjects, ObjectDatabase } from '../../core/ports/object-database.ts';
import type { ObjectId, RepositoryId } from '../../core/kernel/ids.ts';
import { forAll } from '../runner/bulk.ts';
import type { Queryable, TableOf } from '../runner/projection.ts';
import { commitEntry } from './entry.ts';
import { withReader } from './git-reading.ts';
import { type NewCommits, READ_COMMITS_AT_ONCE, readCommits } from './new-commits.ts';
import type { RepositoryPlan } from './plan.ts';

export interface HistoryBatch {
  readonly gone: readonly RepositoryId[];
  readonly plans: readonly RepositoryPlan[];
  readonly objects: Pick<ObjectDatabase, 'open'>;
}

/** A statement's list ends at whichever comes first. */
const ROWS_AT_ONCE = 5_000;
const BYTES_AT_ONCE = 4 * 1024 * 1024;

export async function writeHistory(database: Queryable, table: TableOf, batch: HistoryBatch): Promise<void> {
  await removeRepositories(database, table, batch.gone);
  await writeHeads(database, table, batch.plans);
  await writeRefs(database, table, batch.plans);
  await writeLayers(database, table, batch.plans);
  await writeCommits(database, table, batch);
  await writeOrder(database, table, batch.plans);
}

async function removeRepositories(database: Queryable, table: TableOf, ids: readonly RepositoryId[]): Promise<void> {
  const tables = ['repositories', 'refs', 'commits', 'order', 'layers'] as const;
  for (const name of tables) {
    await forAll(
      database,
      ids,
      `DELETE FROM ${table(`history_${name}`)}
        WHERE repository_id = ANY(ARRAY(SELECT value::uuid FROM json_array_elements_text($1)))`,
    );
  }
}

async function writeHeads(database: Queryable, table: TableOf, plans: readonly RepositoryPlan[]): Promise<void> {
  const rows = plans.map(({ change, after }) => ({
    repository_id: change.id,
    account_id: after.accountId,
    initial_default_branch: after.initialDefaultBranch,
    default_branch: after.defaultBranch,
    revision: after.revision,
    ordered_tip: bytea(after.orderedTip),
    ordered_commits: after.orderedCommits,
    incomplete: after.incomplete,
  }));
  await forAll(
    database,
    rows,
    `INSERT INTO ${table('history_repositories')}
      SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, account_id uuid, initial_default_branch text,
        default_branch text, revision integer, ordered_tip bytea, ordered_commits integer, incomplete boolean)
      ON CONFLICT (repository_id) DO UPDATE SET
        initial_default_branch = excluded.initial_default_branch, default_branch = excluded.default_branch,
        revision = excluded.revision, ordered_tip = excluded.ordered_tip,
        ordered_commits = excluded.ordered_commits, incomplete = excluded.incomplete`,
  );
}

async function writeRefs(database: Queryable, table: TableOf, plans: readonly RepositoryPlan[]): Promise<void> {
  const deleted: { repository_id: string; name: string }[] = [];
  const moved: { repository_id: string; name: string; id: string | null; type: string; peeled: string | null }[] = [];
  for (const { change } of plans) {
    for (const [name, value] of change.refs) {
      const key = { repository_id: change.id, name };
      if (value === null) deleted.push(key);
      else moved.push({ ...key, id: bytea(value.id), type: value.type, peeled: bytea(value.peeled) });
    }
  }
  await inParts(deleted, (part) =>
    forAll(
      database,
      part,
      `DELETE FROM ${table('history_refs')} AS r USING json_to_recordset($1) AS d(repository_id uuid, name text)
        WHERE r.repository_id = d.repository_id AND r.name = d.name`,
    ),
  );
  await inParts(moved, (part) =>
    forAll(
      database,
      part,
      `INSERT INTO ${table('history_refs')}
        SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, name text, id bytea, type text, peeled bytea)
        ON CONFLICT (repository_id, name) DO UPDATE
          SET id = excluded.id, type = excluded.type, peeled = excluded.peeled`,
    ),
  );
}

async function writeLayers(database: Queryable, table: TableOf, plans: readonly RepositoryPlan[]): Promise<void> {
  const rows = plans.flatMap(({ change, committed }) => {
    const before = committed.layers.length - change.layers.length;
    return change.layers.map((layer, index) => ({
      ...{ repository_id: change.id, number: before + index, id: layer.id, key: layer.key },
      ...{ size_bytes: layer.sizeBytes, sha256: layer.sha256, pack: layer.pack },
    }));
  });
  await forAll(
    database,
    rows,
    `INSERT INTO ${table('history_layers')} SELECT * FROM json_to_recordset($1)
      AS r(repository_id uuid, number integer, id uuid, key text, size_bytes bigint, sha256 text, pack text)`,
  );
}

interface CommitRecord {
  readonly repository_id: RepositoryId;
  readonly id: string | null;
  readonly entry: string;
}

async function writeCommits(database: Queryable, table: TableOf, { plans, objects }: HistoryBatch): Promise<void> {
  const insert = (part: readonly CommitRecord[]): Promise<unknown> =>
    forAll(
      database,
      part,
      `INSERT INTO ${table('history_commits')}
        SELECT * FROM json_to_recordset($1) AS c(repository_id uuid, id bytea, entry text)
        ON CONFLICT DO NOTHING`,
    );
  const held = plans.flatMap(({ change, commits }) =>
    commits.commits.map((commit) => ({ repository_id: change.id, id: bytea(commit.id), entry: commitEntry(commit) })),
  );
  await inParts(held, insert, ({ entry }) => entry.length);
  for (const { change, commits, committed } of plans) {
    if (commits.walk !== null) await writeWalk(objects, committed, commits.walk, change.id, insert);
  }
}

/** A history too long to hold: read and written piece by piece. */
async function writeWalk(
  objects: HistoryBatch['objects'],
  committed: CommittedObjects,
  walk: NonNullable<NewCommits['walk']>,
  repository: RepositoryId,
  insert: (part: readonly CommitRecord[]) => Promise<unknown>,
): Promise<void> {
  await withReader(objects, committed, async (reader) => {
    let ids: ObjectId[] = [];
    const flush = async (): Promise<void> => {
      const rows = (await readCommits(reader, ids)).map((commit) => ({
        ...{ repository_id: repository, id: bytea(commit.id), entry: commitEntry(commit) },
      }));
      await inParts(rows, insert, ({ entry }) => entry.length);
      ids = [];
    };
    for await (const id of reader.walk(walk)) {
      ids.push(id);
      if (ids.length === READ_COMMITS_AT_ONCE) await flush();
    }
    await flush();
  });
}

async function writeOrder(database: Queryable, table: TableOf, plans: readonly RepositoryPlan[]): Promise<void> {
  const order = table('history_order');
  const rows: { repository_id: RepositoryId; number: number; id: string | null }[] = [];
  for (const { change, before, order: changed } of plans) {
    if (changed.kind === 'keep') continue;
    if (before !== null && before.orderedCommits > changed.kept) {
      await database.query({
        text: `DELETE FROM ${order} WHERE repository_id = $1 AND number >= $2`,
        values: [change.id, changed.kept],
      });
    }
    const last = changed.kept + changed.ids.length - 1;
    for (const [index, id] of changed.ids.entries()) {
      rows.push({ repository_id: change.id, number: last - index, id: bytea(id) });
    }
  }
  await inParts(rows, (part) =>
    forAll(
      database,
      part,
      `INSERT INTO ${order} SELECT * FROM json_to_recordset($1) AS r(repository_id uuid, number integer, id bytea)`,
    ),
  );
}

function bytea(id: ObjectId | null): string | null {
  return id === null ? null : `\\x${id}`;
}

/** Calls the work for stretches of a list. `sizeOf` is what an item adds to a statement, in characters. */
async function inParts<Item>(
  items: readonly Item[],
  work: (part: readonly Item[]) => Promise<unknown>,
  sizeOf: (item: Item) => number = () => 0,
): Promise<void> {
  let part: Item[] = [];
  let size = 0;
  for (const item of items) {
    part.push(item);
    size += sizeOf(item);
    if (part.length < ROWS_AT_ONCE && size < BYTES_AT_ONCE) continue;
    await work(part);
    part = [];
    size = 0;
  }
  if (part.length > 0) await work(part);
}
