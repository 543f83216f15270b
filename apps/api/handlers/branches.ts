/**
 * Branches. Clients poll the listing most, so its bytes are made once for each revision of a repository.
 *
 * Invariants: a listing is made in turns of the event loop, since a repository may have hundreds of thousands of
 * branches; and few large ones are made at the same time, since each takes a kilobyte of memory for each branch.
 */
import type { z } from 'zod';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import { type BranchList, listBranches } from '../../../core/use-cases/reading/list-branches.ts';
import { readBranch } from '../../../core/use-cases/reading/read-branch.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { conditionalAnswer, encodedBody, encodeJson, type MadeBody } from '../body-cache.ts';
import { commitSummary } from '../commit-json.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { BRANCH, BRANCH_PARAMS, BRANCHES } from '../schemas/branches.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';
import type { ApiServices } from '../services.ts';

export const BRANCH_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'listBranches',
    tag: 'Code',
    summary: 'List branches',
    description: 'All branches with their tips. A repository without commits has no branches, but a default branch.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/branches',
    grant: 'API_COMMITS_READ',
    schemas: { params: REPOSITORY_PARAMS },
    answers: { 200: BRANCHES },
    problems: [304],
    handle: getBranches,
  }),
  repositoryRoute({
    operationId: 'getBranch',
    tag: 'Code',
    summary: 'Read a branch',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/branches/{branch}',
    grant: 'API_COMMITS_READ',
    schemas: { params: BRANCH_PARAMS },
    answers: { 200: BRANCH },
    problems: [304],
    handle: getBranch,
  }),
];

async function getBranches({ context, repository, request }: RepositoryCall): Promise<Outcome> {
  const body = await context.bodies.getOrMake(keyOf(versionOf(repository)), () => makeBody(context, repository));
  return 'refused' in body ? body : conditionalAnswer(body, request.headers['if-none-match']);
}

async function getBranch(
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

/**
 * More branches than the listing of most repositories has: a slot is needed to make it. Internal: a further listing
 * waits.
 */
const MANY_REFS_MIN = 5_000;
/** Branches of which the JSON is made in one turn. */
const PART = 500;

async function makeBody(
  context: ApiServices,
  repository: FoundRepository,
): Promise<MadeBody | { readonly refused: Refusal }> {
  const isLarge = repository.entity.state.refs.size >= MANY_REFS_MIN;
  const release = isLarge ? await context.largeListings.acquire(repository.accountId) : null;
  try {
    const list = await listBranches(context, repository);
    if ('refused' in list) return list;
    const etag = `"${list.version}-b1"`;
    return { key: keyOf(list.version), body: encodedBody(await partsOf(context, repository.id, list), etag) };
  } finally {
    release?.();
  }
}

type BranchesJson = z.output<typeof BRANCHES>;

/** The JSON of `BRANCHES`, in parts. */
async function partsOf(
  context: ApiServices,
  repository: RepositoryId,
  { defaultBranch, branches }: BranchList,
): Promise<readonly string[]> {
  const parts = [`{"default_branch":${JSON.stringify(defaultBranch)},"branches":[`];
  for (let at = 0; at < branches.length; at += PART) {
    if (at > 0) await context.clock.nextTurn();
    const part: BranchesJson['branches'] = branches
      .slice(at, at + PART)
      .map(({ name, commit }) => ({ name, commit: commitSummary(context, repository, commit) }));
    parts.push(`${at > 0 ? ',' : ''}${JSON.stringify(part).slice(1, -1)}`);
  }
  return [...parts, ']}'];
}
