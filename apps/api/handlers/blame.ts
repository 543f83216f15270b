/** Which commit, and which push, brought each line of a file. */
import type { z } from 'zod';
import type { BlameRange } from '../../../core/git/blame.ts';
import { hasMore } from '../../../core/kernel/page.ts';
import type { PushRow } from '../../../core/ports/activity.ts';
import { blameFile, rangesOnPage } from '../../../core/use-cases/reading/blame-file.ts';
import { pushesToldTo } from '../../../core/use-cases/reading/pushes-of-commits.ts';
import { conditionalAnswer, encodeFound } from '../body-cache.ts';
import { pathMembers } from '../contents-json.ts';
import { parseContentsPath } from '../http/contents-path.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { BLAME, BLAME_QUERY } from '../schemas/blame.ts';
import { pageOf, paginationOf } from '../schemas/common.ts';
import { CONTENTS_PARAMS } from '../schemas/contents.ts';

export const BLAME_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'getBlame',
    costly: true,
    tag: 'Code',
    summary: 'Read which commit and which push brought each line of a file',
    description:
      'As `git blame` finds it, without `-M`, `-C` and `-w`. The search is bounded in time, and in lines: the first 100,000 of a file. Who pushed is told to tokens with the grant ALL and the scope ALL_REPO. 422 for a folder.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/blame/{path}',
    grant: 'API_COMMITS_READ',
    schemas: { params: CONTENTS_PARAMS, query: BLAME_QUERY },
    answers: { 200: BLAME },
    problems: [304],
    handle: getBlame,
  }),
];

type Range = z.output<typeof BLAME>['ranges'][number];

async function getBlame(
  { context, repository, principal, request, target, signal }: RepositoryCall,
  { query }: { readonly query: z.output<typeof BLAME_QUERY> },
): Promise<Outcome> {
  const { ref = null } = query;
  // Not shared among requests: it ends when its client disconnects. What was found is kept.
  const wanted = { ref, path: parseContentsPath(target), shown: () => null, signal: signal() };
  const found = await blameFile(context, repository, wanted);
  if ('refused' in found) return found;
  const { commit, blame } = found;
  const page = pageOf(query);
  const shown = rangesOnPage(blame, page);
  if ('refused' in shown) return shown;
  const ids = [...new Set(shown.items.map(({ origin }) => origin.commit))];
  const pushes = await pushesToldTo(principal, context, repository, ids, wanted.signal);
  const json: z.output<typeof BLAME> = {
    commit,
    ranges: shown.items.map((range) => rangeJson(range, pushes.get(range.origin.commit))),
    truncated: hasMore(page, shown.total) || !blame.complete,
    pagination: paginationOf(query, shown.total),
  };
  return conditionalAnswer(encodeFound(context.digest, json, 'b1'), request.headers['if-none-match']);
}

function rangeJson({ start, count, origin }: BlameRange, push: PushRow | undefined): Range {
  const { actor = null, eventId = null } = push ?? {};
  return {
    start,
    count,
    commit: origin.commit,
    ...pathMembers(origin.path),
    event_id: eventId,
    actor: actor === null ? null : { kind: actor.kind, id: actor.id },
  };
}
