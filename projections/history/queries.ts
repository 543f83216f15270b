/** The queries of branches and of the default branch's commits, for REST. */
import type { CommitRow } from '../../core/git/commit-row.ts';
import type { ListedEntry } from '../../core/git/history/listed-commit.ts';
import { MIB } from '../../core/kernel/byte-units.ts';
import type { ObjectId, RepositoryId } from '../../core/kernel/ids.ts';
import { COMMIT_CROWDED_MESSAGE_LENGTH_MAX, COMMITS_PAGE_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { Page, PageOf } from '../../core/kernel/page.ts';
import type { AtRevision, BranchRow } from '../../core/ports/history.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import type { Concerns, LiveReader, ReadQuery } from '../live-reader.ts';
import { rowOfEntry } from './entry.ts';

/**
 * The size of all commits in one list of branches: above it, commits longer than an equal share have their texts cut.
 */
export const BRANCHES_COMMITS_BYTES_MAX = 16 * MIB;

/** The length to which names and addresses of people are cut in a cut entry. */
const CUT_NAME_LENGTH = 256;

/**
 * An entry whose texts fit its share of a list: its message is cut to as many characters as the share has bytes, and
 * its parents are left out, because no list of branches shows them. A character takes up to four bytes, so an answer
 * may be a few times as large as the limit.
 */
const CUT_ENTRY = `json_build_array(c.entry::json->>0, left(c.entry::json->>1, share.bytes), ${[2, 3, 4, 5]
  .map((member) => `left(c.entry::json->>${member}, ${CUT_NAME_LENGTH})`)
  .join(', ')}, c.entry::json->6, c.entry::json->7)::text`;

/** Branches of one statement: their JSON is parsed in one turn of the event loop. */
export const BRANCHES_READ_AT_ONCE = 1_000;

/**
 * The branches behind a name, in byte order. Entries are JSON already, so the query concatenates text: PostgreSQL
 * parses only the entries that it cuts. The share of each is known after the first part, which is read with null for
 * it.
 */
const branchesQuery: ReadQuery = {
  answer: (table) => {
    const joinStatements = `${table('history_refs')} AS r LEFT JOIN ${table('history_commits')} AS c USING (repository_id, id)
        WHERE r.repository_id = h.repository_id AND r.name < 'refs/heads0'`;
    return `SELECT '{"revision":' || h.revision || ',"account":"' || h.account_id || '","incomplete":' || h.incomplete
      || ',"share":' || share.bytes || ',"branches":['
      || coalesce((
        SELECT string_agg('[' || to_json(substr(c.name, 12)) || ',' || coalesce(
          CASE WHEN octet_length(c.entry) <= share.bytes THEN c.entry ELSE ${CUT_ENTRY} END, 'null') || ']', ',' ORDER BY c.name)
        FROM (SELECT r.name, c.entry FROM ${joinStatements} AND r.name > $2
          ORDER BY r.name LIMIT ${BRANCHES_READ_AT_ONCE}) AS c), '') || ']}'
    FROM ${table('history_repositories')} AS h, LATERAL (
      SELECT coalesce($3::int, (
        SELECT CASE WHEN coalesce(sum(octet_length(c.entry)), 0) <= ${BRANCHES_COMMITS_BYTES_MAX} THEN ${BRANCHES_COMMITS_BYTES_MAX}
          ELSE ${BRANCHES_COMMITS_BYTES_MAX} / count(*) END::int FROM ${joinStatements} AND r.name > 'refs/heads/')) AS bytes) AS share
    WHERE h.repository_id = $1`;
  },
};

const revisionQuery: ReadQuery = {
  answer: (table) => `SELECT '{"revision":' || revision || ',"account":"' || account_id || '"}'
    FROM ${table('history_repositories')} WHERE repository_id = $1`,
};

/** An entry of a page that is too large: `listedPage` cuts its message in the same way. */
const CROWDED_ENTRY = `CASE WHEN length(p.entry::json->>1) <= ${COMMIT_CROWDED_MESSAGE_LENGTH_MAX} THEN p.entry
  ELSE jsonb_set(p.entry::jsonb, '{1}', to_jsonb(left(p.entry::json->>1, ${COMMIT_CROWDED_MESSAGE_LENGTH_MAX - 1}) || '…'))::text END`;

const commitsQuery: ReadQuery = {
  answer: (
    table,
  ) => `SELECT '{"revision":' || h.revision || ',"account":"' || h.account_id || '","incomplete":' || h.incomplete
      || ',"tip":"' || encode(h.ordered_tip, 'hex') || '","total":' || h.ordered_commits || ',"commits":['
      || coalesce((
        SELECT string_agg(CASE WHEN p.bytes <= ${COMMITS_PAGE_BYTES_MAX} THEN p.entry ELSE ${CROWDED_ENTRY} END, ',' ORDER BY p.number DESC)
        FROM (SELECT o.number, c.entry, sum(octet_length(c.entry)) OVER () AS bytes
          FROM ${table('history_order')} AS o JOIN ${table('history_commits')} AS c USING (repository_id, id)
          WHERE o.repository_id = h.repository_id
            AND o.number < h.ordered_commits - $2 AND o.number >= h.ordered_commits - $2 - $3) AS p), '') || ']}'
    FROM ${table('history_repositories')} AS h WHERE h.repository_id = $1 AND h.ordered_tip IS NOT NULL`,
};

interface HistoryJson {
  readonly revision: number;
  readonly account: string;
  /** True if a later event, not yet applied, replaced the objects of this revision. */
  readonly incomplete?: boolean;
}

interface BranchesJson extends HistoryJson {
  readonly share: number;
  readonly branches: readonly (readonly [string, ListedEntry | null])[];
}

interface CommitsJson extends HistoryJson {
  readonly tip: ObjectId;
  readonly total: number;
  readonly commits: readonly ListedEntry[];
}

/** The version of a repository's rows: the model's generation, and the repository's revision in it. */
export interface HistoryVersion {
  readonly generation: number;
  readonly revision: number;
}

export type Branches = AtRevision & { readonly branches: readonly BranchRow[] };
export type Commits = AtRevision & { readonly tip: ObjectId } & PageOf<CommitRow>;

async function read<Value extends HistoryJson>(
  reader: LiveReader,
  query: ReadQuery,
  repository: RepositoryId,
  values: readonly unknown[] = [],
): Promise<{ readonly generation: number; readonly json: Value } | null> {
  const concerns = (value: unknown): Concerns => {
    const json = value as Value | null;
    const own = `repository-${repository}`;
    if (json === null) return { streams: [own] };
    // The account's stream says which branch is the default until the repository's own stream changes it.
    return { streams: [own, `account-${json.account}`], incomplete: json.incomplete === true };
  };
  const { value, generation } = await reader.read(query, [repository, ...values], concerns);
  const json = value as Value | null;
  return json === null ? null : { generation, json };
}

/** Resolves null for a repository that the model does not know. */
export async function readVersion(reader: LiveReader, repository: RepositoryId): Promise<HistoryVersion | null> {
  const found = await read<HistoryJson>(reader, revisionQuery, repository);
  return found === null ? null : { generation: found.generation, revision: found.json.revision };
}

/**
 * Readings that begin again because a push was applied between two parts. Internal: only pushes during as many readings
 * in a row reach it.
 */
const BRANCHES_TRIES_MAX = 5;

/** Resolves null for a repository that the model does not know. All parts are of one revision. */
export async function readBranches(
  reader: LiveReader,
  repository: RepositoryId,
): Promise<(HistoryVersion & { readonly answer: Branches }) | null> {
  for (let tries = 0; tries < BRANCHES_TRIES_MAX; tries += 1) {
    const first = await readBranchesBehind(reader, repository, ALL_BRANCHES, null);
    if (first === null) return null;
    const { generation, revision, share } = first;
    const branches = [...first.branches];
    let part: BranchesPart | null = first;
    while (part !== null && part.branches.length === BRANCHES_READ_AT_ONCE) {
      const last: string = ALL_BRANCHES + (part.branches.at(-1)?.name ?? '');
      const next: BranchesPart | null = await readBranchesBehind(reader, repository, last, share);
      part = next?.generation === generation && next.revision === revision ? next : null;
      for (const branch of part?.branches ?? []) branches.push(branch);
    }
    if (part !== null) return { generation, revision, answer: { revision, branches } };
  }
  throw new ReadModelError('read-model-behind', `Repository ${repository} is pushed to while its branches are read`);
}

const ALL_BRANCHES = 'refs/heads/';

interface BranchesPart extends HistoryVersion {
  readonly share: number;
  readonly branches: readonly BranchRow[];
}

async function readBranchesBehind(
  reader: LiveReader,
  repository: RepositoryId,
  name: string,
  share: number | null,
): Promise<BranchesPart | null> {
  const found = await read<BranchesJson>(reader, branchesQuery, repository, [name, share]);
  if (found === null) return null;
  const { generation, json } = found;
  const branches = json.branches.map(([branch, entry]) => {
    if (entry === null) throw inconsistent(repository, `the tip of ${branch}`);
    return { name: branch, commit: rowOfEntry(entry) };
  });
  return { generation, revision: json.revision, share: json.share, branches };
}

export async function readCommits(reader: LiveReader, repository: RepositoryId, page: Page): Promise<Commits | null> {
  const { offset, limit } = page;
  const found = await read<CommitsJson>(reader, commitsQuery, repository, [offset, limit]);
  if (found === null) return null;
  const { revision, tip, total, commits } = found.json;
  const expected = Math.max(0, Math.min(limit, total - offset));
  if (commits.length !== expected) throw inconsistent(repository, `${expected - commits.length} commits of its order`);
  return { revision, tip, total, items: commits.map(rowOfEntry) };
}

function inconsistent(repository: RepositoryId, what: string): ReadModelError {
  return new ReadModelError('read-model-unavailable', `Repository ${repository} lacks ${what}: verify the read models`);
}
