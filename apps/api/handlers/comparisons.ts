/**
 * What lies between two refs.
 *
 * Invariants: an answer never takes one that was cut short by time for the whole: it is refused, or says what was not
 * counted.
 */
import type { z } from 'zod';
import { hasMore } from '../../../core/kernel/page.ts';
import { compareRefs } from '../../../core/use-cases/reading/compare-refs.ts';
import { conditionalAnswer, encodeJson } from '../body-cache.ts';
import { commitObject } from '../commit-json.ts';
import { COUNTED_ONLY, filesJson } from '../diff-json.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { PAGE_QUERY, pageOf } from '../schemas/common.ts';
import { COMPARISON, COMPARISON_PARAMS } from '../schemas/comparisons.ts';

export const COMPARISON_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'compareRefs',
    costly: true,
    tag: 'Code',
    summary: 'Compare two refs',
    description:
      'The commits that `head` reaches and `base` does not, how many each reaches that the other does not, and the files that differ: since the best common ancestor with three dots, from `base` itself with two. 422 if the commits between the two took too long to find.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/compare/{comparison}',
    grant: 'API_COMMITS_READ',
    schemas: { params: COMPARISON_PARAMS, query: PAGE_QUERY },
    answers: { 200: COMPARISON },
    problems: [304],
    handle: getComparison,
  }),
];

interface Input {
  readonly params: z.output<typeof COMPARISON_PARAMS>;
  readonly query: z.output<typeof PAGE_QUERY>;
}

async function getComparison(call: RepositoryCall, { params, query }: Input): Promise<Outcome> {
  const { context, repository, request } = call;
  const { direct } = params.comparison;
  const [page, signal] = [pageOf(query), call.signal()];
  const wanted = { ...params.comparison, page, shown: { bounds: COUNTED_ONLY }, signal };
  const found = await compareRefs(context, repository, wanted);
  if ('refused' in found) return found;
  const { base, head, mergeBase, mergeBaseKnown, aheadBehind, commits, diff } = found;
  if (!mergeBaseKnown || commits === null) return { refused: { code: 'comparison-too-costly' } };
  const total = aheadBehind?.ahead ?? null;
  const json: z.output<typeof COMPARISON> = {
    ahead: total,
    behind: aheadBehind?.behind ?? null,
    merge_base: mergeBase,
    commits: commits.map((row) => commitObject(context, repository.id, row)),
    ...filesJson(diff),
    pagination: {
      page: query.page,
      limit: query.limit,
      total,
      has_more: total === null ? commits.length === query.limit : hasMore(page, total),
    },
  };
  // What lies between two commits never changes, but another time may have counted more.
  const isCut = total === null || diff.truncated.includes('time');
  const form = `${direct ? '2' : '3'}-${query.page}-${query.limit}${isCut ? '-cut' : ''}`;
  const etag = `"${base.commit.id}-${head.commit.id}-${form}-v1"`;
  return conditionalAnswer(encodeJson(json, etag), request.headers['if-none-match']);
}
