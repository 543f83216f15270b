/** Branches and the default branch's commits, as REST shows them. */
import type { ObjectId, RepositoryId } from '../../core/kernel/ids.ts';
import {
  type AtRevision,
  type BranchRow,
  type CommitRow,
  type Page,
  type PageOf,
  ReadModelError,
} from '../../core/ports/read-models.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import { type CommitEntry, commitRow } from './entry.ts';

/** Entries are JSON already, so an answer is put together as text: PostgreSQL never looks inside them. */
const branchesQuery: ReadQuery = {
  answer: (
    table,
  ) => `SELECT '{"revision":' || h.revision || ',"account":"' || h.account_id || '","incomplete":' || h.incomplete || ',"branches":['
      || coalesce((
        SELECT string_agg('[' || to_json(substr(r.name, 12)) || ',' || coalesce(c.entry, 'null') || ']', ',' ORDER BY r.name)
        FROM ${table('history_refs')} AS r LEFT JOIN ${table('history_commits')} AS c USING (repository_id, id)
        WHERE r.repository_id = h.repository_id AND r.name >= 'refs/heads/' AND r.name < 'refs/heads0'), '') || ']}'
    FROM ${table('history_repositories')} AS h WHERE h.repository_id = $1`,
};

const revisionQuery: ReadQuery = {
  answer: (table) => `SELECT '{"revision":' || revision || ',"account":"' || account_id || '"}'
    FROM ${table('history_repositories')} WHERE repository_id = $1`,
};

const commitsQuery: ReadQuery = {
  answer: (
    table,
  ) => `SELECT '{"revision":' || h.revision || ',"account":"' || h.account_id || '","incomplete":' || h.incomplete
      || ',"tip":"' || encode(h.ordered_tip, 'hex') || '","total":' || h.ordered_commits || ',"commits":['
      || coalesce((
        SELECT string_agg(c.entry, ',' ORDER BY o.number DESC)
        FROM ${table('history_order')} AS o JOIN ${table('history_commits')} AS c USING (repository_id, id)
        WHERE o.repository_id = h.repository_id
          AND o.number < h.ordered_commits - $2 AND o.number >= h.ordered_commits - $2 - $3), '') || ']}'
    FROM ${table('history_repositories')} AS h WHERE h.repository_id = $1 AND h.ordered_tip IS NOT NULL`,
};

interface Shown {
  readonly revision: number;
  readonly account: string;
  /** The revision's objects were replaced by a later event, which is on its way. */
  readonly incomplete?: boolean;
}

interface ShownBranches extends Shown {
  readonly branches: readonly (readonly [string, CommitEntry | null])[];
}

interface ShownCommits extends Shown {
  readonly tip: ObjectId;
  readonly total: number;
  readonly commits: readonly CommitEntry[];
}

/** Where a repository stands: the generation of the model, and the revision within it. */
export interface Standing {
  readonly generation: number;
  readonly revision: number;
}

export type Branches = AtRevision & { readonly branches: readonly BranchRow[] };
export type Commits = AtRevision & { readonly tip: ObjectId } & PageOf<CommitRow>;

async function read<Value extends Shown>(
  reader: LiveReader,
  query: ReadQuery,
  repository: RepositoryId,
  values: readonly unknown[] = [],
): Promise<{ readonly generation: number; readonly shown: Value } | null> {
  const concerns = (value: unknown): { readonly streams: readonly string[] } => {
    const shown = value as Value | null;
    const own = `repository-${repository}`;
    // The account's stream says which branch is the default at first.
    return { streams: shown === null ? [own] : [own, `account-${shown.account}`] };
  };
  const { value, generation } = await reader.read(query, [repository, ...values], concerns);
  const shown = value as Value | null;
  if (shown === null) return null;
  if (shown.incomplete === true) {
    throw new ReadModelError('read-model-behind', `Repository ${repository} is between two revisions`);
  }
  return { generation, shown };
}

/** Null for a repository that the model does not know. */
export async function readStanding(reader: LiveReader, repository: RepositoryId): Promise<Standing | null> {
  const found = await read<Shown>(reader, revisionQuery, repository);
  return found === null ? null : { generation: found.generation, revision: found.shown.revision };
}

export async function readBranches(
  reader: LiveReader,
  repository: RepositoryId,
): Promise<(Standing & { readonly answer: Branches }) | null> {
  const found = await read<ShownBranches>(reader, branchesQuery, repository);
  if (found === null) return null;
  const { generation, shown } = found;
  const branches = shown.branches.map(([name, entry]) => {
    if (entry === null) throw incoherent(repository, `the tip of ${name}`);
    return { name, commit: commitRow(entry) };
  });
  return { generation, revision: shown.revision, answer: { revision: shown.revision, branches } };
}

export async function readCommits(reader: LiveReader, repository: RepositoryId, page: Page): Promise<Commits | null> {
  const { offset, limit } = page;
  const found = await read<ShownCommits>(reader, commitsQuery, repository, [offset, limit]);
  if (found === null) return null;
  const { revision, tip, total, commits } = found.shown;
  const expected = Math.max(0, Math.min(limit, total - offset));
  if (commits.length !== expected) throw incoherent(repository, `${expected - commits.length} commits of its order`);
  return { revision, tip, total, items: commits.map(commitRow) };
}

function incoherent(repository: RepositoryId, what: string): ReadModelError {
  return new ReadModelError('read-model-unavailable', `Repository ${repository} lacks ${what}: verify the read models`);
}
