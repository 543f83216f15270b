/** The commit listing, whose bytes are made once for each page and revision of a repository. */
import type { z } from 'zod';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import type { FoundRepository } from '../../../core/use-cases/accounts/repositories.ts';
import { listCommits } from '../../../core/use-cases/reading/list-commits.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import { conditionalAnswer, encodeJson, type MadeBody } from '../body-cache.ts';
import { commitObject } from '../commit-json.ts';
import type { Outcome, RepositoryCall } from '../route.ts';
import { pageOf, paginationOf } from '../schemas/common.ts';
import type { COMMITS, COMMITS_QUERY } from '../schemas/commits.ts';
import type { ApiServices } from '../services.ts';

type Query = z.output<typeof COMMITS_QUERY>;

export async function getCommits(
  { context, repository, request }: RepositoryCall,
  { query }: { readonly query: Query },
): Promise<Outcome> {
  const key = keyOf(versionOf(repository), query);
  const body = await context.bodies.getOrMake(key, () => makeBody(context, repository, query));
  return 'refused' in body ? body : conditionalAnswer(body, request.headers['if-none-match']);
}

function keyOf(version: string, { page, limit, ref }: Query): string {
  return `commits ${version} ${page} ${limit} ${ref === undefined ? 'default' : `ref ${ref}`}`;
}

async function makeBody(
  context: ApiServices,
  repository: FoundRepository,
  query: Query,
): Promise<MadeBody | { readonly refused: Refusal }> {
  const list = await listCommits(context, repository, { ref: query.ref ?? null, page: pageOf(query) });
  if ('refused' in list) return list;
  const { version, ref, commits } = list;
  const json: z.output<typeof COMMITS> = {
    branch: ref,
    commits: commits.items.map((row) => commitObject(context, repository.id, row)),
    pagination: paginationOf(query, commits.total),
  };
  return { key: keyOf(version, query), body: encodeJson(json, `"${version}-c1"`) };
}
