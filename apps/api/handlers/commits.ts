/** The commit listing: of the default branch from the read model, of any other ref from the objects. */
import type { z } from 'zod';
import type { RepositoryId, Uuid } from '../../../core/kernel/ids.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { Commit } from '../../../core/ports/object-database.ts';
import type { CommitRow, PageOf } from '../../../core/ports/read-models.ts';
import { listCommits } from '../../../core/use-cases/reading/commit-walk.ts';
import { committedObjects } from '../../../core/use-cases/pushing/push-refs.ts';
import type { FoundRepository } from '../../../core/use-cases/accounts/repositories.ts';
import { findDefaultBranch, resolveRef } from '../../../core/use-cases/reading/resolve-ref.ts';
import { conditionalAnswer, encodeJson, type MadeBody } from '../body-cache.ts';
import type { Outcome, RepositoryCall } from '../route.ts';
import { offsetOf, paginationOf } from '../schemas/common.ts';
import type { COMMIT, COMMITS, COMMITS_QUERY } from '../schemas/commits.ts';
import type { ApiServices } from '../services.ts';
import { readAtRevision } from './at-revision.ts';

type Query = z.output<typeof COMMITS_QUERY>;
type Refused = { readonly refused: Refusal };

export async function getCommits(
  { context, repository, request }: RepositoryCall,
  { query }: { readonly query: Query },
): Promise<Outcome> {
  const body = await context.bodies.through(keyOf(repository, query), () => makeCommits(context, repository, query));
  return 'refused' in body ? body : conditionalAnswer(body, request.headers['if-none-match']);
}

function keyOf({ id, entity }: FoundRepository, { page, limit, ref }: Query): string {
  return `commits ${id} ${entity.revision} ${page} ${limit} ${ref === undefined ? 'default' : `ref ${ref}`}`;
}

async function makeCommits(context: ApiServices, known: FoundRepository, query: Query): Promise<MadeBody | Refused> {
  const { ref } = query;
  const page = { offset: offsetOf(query), limit: query.limit };
  let repository = known;
  if (ref === undefined || ref === known.defaultBranch) {
    const read = await readAtRevision(context, known, {
      isEmpty: (current) => findDefaultBranch(current) === null,
      read: ({ id }) => context.readModels.defaultBranchCommits(id, page),
    });
    if (read === null) return { refused: { code: 'repository-not-found' } };
    // The default branch may have changed between the request and this revision: then `ref` names another.
    if (read.rows !== null && (ref === undefined || ref === read.repository.defaultBranch)) {
      return encode(context, read.repository, query, read.repository.defaultBranch, read.rows);
    }
    if (ref === undefined) return { refused: { code: 'repository-without-commits' } };
    repository = read.repository;
  }
  const reader = await context.objects.open(committedObjects(repository.id, repository.entity));
  try {
    const resolved = await resolveRef(repository, reader, ref ?? null);
    if ('refused' in resolved) return resolved;
    const listed = await listCommits(reader, resolved.commit.id, page, context.commitTotals);
    return encode(context, repository, query, resolved.name, { ...listed, items: listed.items.map(rowOf) });
  } finally {
    reader.close();
  }
}

function encode(
  context: ApiServices,
  repository: FoundRepository,
  query: Query,
  branch: string,
  listed: PageOf<CommitRow>,
): MadeBody {
  const list: z.output<typeof COMMITS> = {
    branch,
    commits: listed.items.map((row) => commitObject(context, repository.id, row)),
    pagination: paginationOf(query, listed.total),
  };
  return {
    key: keyOf(repository, query),
    body: encodeJson(list, `"${repository.id}-${repository.entity.revision}-c1"`),
  };
}

function rowOf({ id, message, author, committer, parents }: Commit): CommitRow {
  return {
    id,
    message,
    author,
    committer,
    authoredAt: author.seconds,
    committedAt: committer.seconds,
    parents,
  };
}

function commitObject({ ids }: ApiServices, repository: RepositoryId, row: CommitRow): z.output<typeof COMMIT> {
  return {
    id: ids.derive<Uuid>(repository, row.id),
    hexsha: row.id,
    message: row.message,
    author: { name: row.author.name, email: row.author.email },
    committer: { name: row.committer.name, email: row.committer.email },
    authored_at: instant(row.authoredAt),
    committed_at: instant(row.committedAt),
    parents: [...row.parents],
  };
}

/** The last second of the year 9999: RFC 3339 has no later one, commits do. */
const SECONDS_MAX = 253_402_300_799;

function instant(seconds: number): string {
  return new Date(Math.min(Math.max(seconds, 0), SECONDS_MAX) * 1_000).toISOString();
}
