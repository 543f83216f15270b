/** Commits as JSON, the same in every listing. */
import type { z } from 'zod';
import type { CommitRow } from '../../core/git/commit-row.ts';
import { commitTime } from '../../core/git/commit-time.ts';
import type { RepositoryId, Uuid } from '../../core/kernel/ids.ts';
import type { Ids } from '../../core/ports/clock.ts';
import type { COMMIT } from './schemas/commits.ts';
import type { COMMIT_SUMMARY } from './schemas/common.ts';

interface CommitIds {
  readonly ids: Pick<Ids, 'derive'>;
}

/** `id` is a UUID derived from the repository and the commit: the same in every answer. */
export function commitSummary(
  { ids }: CommitIds,
  repository: RepositoryId,
  { id: hexsha, message, author, committer }: CommitRow,
): z.output<typeof COMMIT_SUMMARY> {
  return {
    id: ids.derive<Uuid>(repository, hexsha),
    hexsha,
    message,
    author: { name: author.name, email: author.email },
    committer: { name: committer.name, email: committer.email },
  };
}

export function commitObject(context: CommitIds, repository: RepositoryId, row: CommitRow): z.output<typeof COMMIT> {
  return {
    ...commitSummary(context, repository, row),
    authored_at: commitTime(row.authoredAt),
    committed_at: commitTime(row.committedAt),
    parents: [...row.parents],
  };
}
