/** Branches. Clients poll the listing most, so its bytes are made once for each revision of a repository. */
import type { z } from 'zod';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { FoundRepository } from '../../../core/use-cases/accounts/repositories.ts';
import { listBranches } from '../../../core/use-cases/reading/list-branches.ts';
import { readBranch } from '../../../core/use-cases/reading/read-branch.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import { conditionalAnswer, encodeJson, type MadeBody } from '../body-cache.ts';
import { commitSummary } from '../commit-json.ts';
import type { Outcome, RepositoryCall } from '../route.ts';
import type { BRANCH, BRANCH_PARAMS, BRANCHES } from '../schemas/branches.ts';
import type { ApiServices } from '../services.ts';

export async function getBranches({ context, repository, request }: RepositoryCall): Promise<Outcome> {
  const body = await context.bodies.getOrMake(keyOf(versionOf(repository)), () => makeBody(context, repository));
  return 'refused' in body ? body : conditionalAnswer(body, request.headers['if-none-match']);
}

export async function getBranch(
  { context, repository, request }: RepositoryCall,
  { params }: { readonly params: z.output<typeof BRANCH_PARAMS> },
): Promise<Outcome> {
  const found = await readBranch(context, repository, params.branch);
  if ('refused' in found) return found;
  const { version, name, commit } = found;
  const json: z.output<typeof BRANCH> = { name, commit: commitSummary(context, repository.id, commit) };
  return conditionalAnswer(encodeJson(json, `"${version}-b1"`), request.headers['if-none-match']);
}

function keyOf(version: string): string {
  return `branches ${version}`;
}

async function makeBody(
  context: ApiServices,
  repository: FoundRepository,
): Promise<MadeBody | { readonly refused: Refusal }> {
  const list = await listBranches(context, repository);
  if ('refused' in list) return list;
  const { version, defaultBranch, branches } = list;
  const json: z.output<typeof BRANCHES> = {
    default_branch: defaultBranch,
    branches: branches.map(({ name, commit }) => ({ name, commit: commitSummary(context, repository.id, commit) })),
  };
  return { key: keyOf(version), body: encodeJson(json, `"${version}-b1"`) };
}
