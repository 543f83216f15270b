/** The branch listing: the most polled read, so its bytes are made once for each revision of a repository. */
import type { z } from 'zod';
import type { RepositoryId, Uuid } from '../../../core/kernel/ids.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { BranchRow } from '../../../core/ports/read-models.ts';
import type { FoundRepository } from '../../../core/use-cases/accounts/repositories.ts';
import { conditionalAnswer, encodeJson, type MadeBody } from '../body-cache.ts';
import type { Outcome, RepositoryCall } from '../route.ts';
import type { BRANCHES } from '../schemas/branches.ts';
import type { ApiServices } from '../services.ts';
import { readAtRevision } from './at-revision.ts';

export async function getBranches({ context, repository, request }: RepositoryCall): Promise<Outcome> {
  const body = await context.bodies.through(keyOf(repository), () => makeBranches(context, repository));
  return 'refused' in body ? body : conditionalAnswer(body, request.headers['if-none-match']);
}

/** The revision stands for the branches and the default branch: the creator's choice of one never changes. */
function keyOf({ id, entity }: FoundRepository): string {
  return `branches ${id} ${entity.revision}`;
}

async function makeBranches(
  context: ApiServices,
  known: FoundRepository,
): Promise<MadeBody | { readonly refused: Refusal }> {
  const read = await readAtRevision(context, known, {
    isEmpty: ({ entity }) => entity.state.refs.size === 0,
    read: ({ id }) => context.readModels.branches(id),
  });
  if (read === null) return { refused: { code: 'repository-not-found' } };
  const { repository, rows } = read;
  const list: z.output<typeof BRANCHES> = {
    default_branch: repository.defaultBranch,
    branches: (rows?.branches ?? []).map((row) => branchObject(context, repository.id, row)),
  };
  return { key: keyOf(repository), body: encodeJson(list, `"${repository.id}-${repository.entity.revision}-b1"`) };
}

function branchObject(
  { ids }: ApiServices,
  repository: RepositoryId,
  { name, commit }: BranchRow,
): z.output<typeof BRANCHES>['branches'][number] {
  const { id: hexsha, message, author, committer } = commit;
  return {
    name,
    commit: {
      id: ids.derive<Uuid>(repository, hexsha),
      hexsha,
      message,
      author: { name: author.name, email: author.email },
      committer: { name: committer.name, email: committer.email },
    },
  };
}
