/** Files by a part of their path, and lines of files by a text that they hold. */
import type { z } from 'zod';
import { decodeUtf8, decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import { findFiles } from '../../../core/use-cases/reading/find-files.ts';
import { pathsRefused } from '../../../core/use-cases/reading/paths-on-page.ts';
import { searchCode } from '../../../core/use-cases/reading/search-code.ts';
import { encodePath } from '../../front-door/request-target.ts';
import { conditionalAnswer, encodeFound, encodeJson } from '../body-cache.ts';
import { pathMembers } from '../contents-json.ts';
import { parseQueryPath } from '../http/contents-path.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { pageOf, paginationOf } from '../schemas/common.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';
import { CODE_SEARCH, FILES_QUERY, FOUND_FILES, SEARCH_QUERY } from '../schemas/search.ts';

export const SEARCH_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'findFiles',
    tag: 'Code',
    summary: 'Find files by their path',
    description:
      'The files of the default branch, or of `ref`, whose path contains `q`. All pages together hold each of them once. 422 for more than 300,000 files.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/files',
    grant: 'API_COMMITS_READ',
    schemas: { params: REPOSITORY_PARAMS, query: FILES_QUERY },
    answers: { 200: FOUND_FILES },
    problems: [304],
    handle: getFiles,
  }),
  repositoryRoute({
    operationId: 'searchCode',
    tag: 'Code',
    summary: 'Search in files',
    description:
      'The lines of the files of the default branch, or of `ref`, that hold `q`. Links and binary files are not searched. A search ends after 5 seconds of processor time or 1,000 matches; `complete` is false then. An account has two at the same time, and further ones wait. 422 for an expression where the service knows none.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/search',
    costly: true,
    grant: 'API_COMMITS_READ',
    schemas: { params: REPOSITORY_PARAMS, query: SEARCH_QUERY },
    answers: { 200: CODE_SEARCH },
    problems: [304],
    handle: getMatches,
  }),
];

async function getFiles(
  call: RepositoryCall,
  { query }: { readonly query: z.output<typeof FILES_QUERY> },
): Promise<Outcome> {
  const { context, repository, request } = call;
  const { ref = null, q: text = '' } = query;
  const found = await findFiles(context, repository, { ref, text, page: pageOf(query), signal: call.signal() });
  if ('refused' in found) return found;
  const { items, total } = found.files;
  const tooLong = pathsRefused(items);
  if (tooLong !== null) return tooLong;
  const isText = items.every(({ path }) => decodeUtf8(path) !== null);
  const json: z.output<typeof FOUND_FILES> = {
    paths: items.map(({ path }) => decodeUtf8Lossy(path)),
    ...(isText ? {} : { paths_encoded: items.map(({ path }) => encodePath(path)) }),
    pagination: paginationOf(query, total),
  };
  return conditionalAnswer(encodeJson(json, `"${found.tree}-f1"`), request.headers['if-none-match']);
}

async function getMatches(
  call: RepositoryCall,
  { query }: { readonly query: z.output<typeof SEARCH_QUERY> },
): Promise<Outcome> {
  const { context, repository, request, target } = call;
  const { ref = null, q: text, regex: isRegex } = query;
  const path = query.path === undefined ? { names: [], folder: true } : parseQueryPath(target, 'path');
  const wanted = { ref, text, isRegex, path, page: pageOf(query), signal: call.signal() };
  const found = await searchCode(context, repository, wanted);
  if ('refused' in found) return found;
  const { matches, isComplete, filesSearched } = found;
  const tooLong = pathsRefused(matches.items);
  if (tooLong !== null) return tooLong;
  const json: z.output<typeof CODE_SEARCH> = {
    matches: matches.items.map(({ path: bytes, line, text: shown, before, after }) => {
      return { ...pathMembers(bytes), line, text: shown, before: [...before], after: [...after] };
    }),
    complete: isComplete,
    searched_files: filesSearched,
    pagination: paginationOf(query, matches.total),
  };
  return conditionalAnswer(encodeFound(context.digest, json, 's1'), request.headers['if-none-match']);
}
