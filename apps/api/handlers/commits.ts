/** Commits: the listing, whose bytes are made once for each page and revision of a repository, one, and new ones. */
import type { z } from 'zod';
import { commitRow } from '../../../core/git/history/listed-commit.ts';
import { ZERO_OBJECT_ID } from '../../../core/kernel/ids.ts';
import { REQUEST_POINTS } from '../../../core/kernel/limits.ts';
import type { Refusal } from '../../../core/kernel/refusal.ts';
import { withLineEnd } from '../../../core/kernel/text.ts';
import type { WantedCommit } from '../../../core/use-cases/pushing/decide-commit.ts';
import type { PushKey } from '../../../core/use-cases/pushing/push-refs.ts';
import {
  readWritten,
  type TriedCommit,
  tryCommit,
  type WrittenCommit,
  writeCommit,
} from '../../../core/use-cases/pushing/write-commit.ts';
import { type CommitSearch, listCommits, type WantedPath } from '../../../core/use-cases/reading/list-commits.ts';
import { readCommit } from '../../../core/use-cases/reading/read-commit.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import { branchRef } from '../../../core/use-cases/reading/resolve-ref.ts';
import { refChangesOf } from '../../front-door/callers.ts';
import { refusedPush } from '../../front-door/changes.ts';
import { byAccount, signatureOf } from '../authors.ts';
import { conditionalAnswer, type EncodedBody, encodeJson, type MadeBody } from '../body-cache.ts';
import { changedOnce, GONE } from '../changed-once.ts';
import { commitObject } from '../commit-json.ts';
import { rateAnswer } from '../denials.ts';
import { COUNTED_ONLY, filesJson } from '../diff-json.ts';
import { ok, problem } from '../http/answer.ts';
import { parseQueryPath } from '../http/contents-path.ts';
import { changesOf, notWritten } from '../new-commit.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { CHANGED_COMMIT, COMMIT_PARAMS, COMMITS, COMMITS_QUERY } from '../schemas/commits.ts';
import { pageOf } from '../schemas/common.ts';
import {
  COMMIT_NOT_WRITTEN,
  COMMIT_OUTCOME,
  NEW_COMMIT,
  type TRIED_COMMIT,
  WRITTEN_COMMIT,
} from '../schemas/new-commits.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';

export const COMMIT_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'listCommits',
    tag: 'Code',
    summary: 'List commits',
    description:
      'The commits that the default branch, or `ref`, reaches; of these those that `path`, `author`, `text`, `since` and `until` ask for, each of which narrows the list. 404 if the repository has no commits. A search costs more of the rate than a list; it ends after 5 seconds or 10,000 commits: the last page has `has_more` then.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/commits',
    grant: 'API_COMMITS_READ',
    schemas: { params: REPOSITORY_PARAMS, query: COMMITS_QUERY },
    answers: { 200: COMMITS },
    problems: [304],
    handle: getCommits,
  }),
  repositoryRoute({
    operationId: 'getCommit',
    tag: 'Code',
    summary: 'Read a commit and what it changed',
    description:
      'The commit must be one that a branch or tag reaches. What is compared is bounded in bytes and time: then lines are not counted, or files are missing.',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/commits/{hexsha}',
    grant: 'API_COMMITS_READ',
    schemas: { params: COMMIT_PARAMS },
    answers: { 200: CHANGED_COMMIT },
    problems: [304, 422],
    handle: getCommit,
  }),
  repositoryRoute({
    operationId: 'writeCommit',
    tag: 'Git data',
    summary: 'Write a commit',
    description:
      'Writes, deletes and moves files on a branch, which may be new: one push of one commit. It is decided against `expected`, the head that the caller saw. 200 if nothing was to be changed, and for a dry run; 409 if the head, or what a change expects at its path, is another. The commit is not signed. Contents of up to 64 MiB are sent as `multipart/form-data`: this JSON is its first part, `commit`, and each of the others has the name that one change gives as its `part`.',
    method: 'POST',
    path: '/v1/repos/{username}/{name}/commits',
    push: true,
    parts: true,
    grant: 'GIT_HTTP_WRITE',
    schemas: { params: REPOSITORY_PARAMS, body: NEW_COMMIT },
    answers: { 200: COMMIT_OUTCOME, 201: WRITTEN_COMMIT },
    problems: [409, 410],
    refusal: COMMIT_NOT_WRITTEN,
    handle: postCommit,
  }),
];

type Query = z.output<typeof COMMITS_QUERY>;
type Refused = { readonly refused: Refusal };

async function getCommits(call: RepositoryCall, { query }: { readonly query: Query }): Promise<Outcome> {
  const { context, repository, request, principal } = call;
  const exceeded = isSearch(query) ? context.callers.charge(principal, SEARCH_POINTS) : null;
  if (exceeded !== null) return rateAnswer(exceeded);
  const made = isNarrowed(query)
    ? await searchedBody(call, query)
    : await context.bodies.getOrMake(keyOf(versionOf(repository), query), () => makeBody(call, query, null, null));
  return 'refused' in made ? made : conditionalAnswer(made, request.headers['if-none-match']);
}

function keyOf(version: string, { page, limit, ref }: Query): string {
  return `commits ${version} ${page} ${limit} ${ref === undefined ? 'default' : `ref ${ref}`}`;
}

/** What git does for a search costs more than the page of a list, of which the caller has paid. */
const SEARCH_POINTS = REQUEST_POINTS.costly - REQUEST_POINTS.read;

function isSearch({ author, text, since, until }: Query): boolean {
  return [author, text, since, until].some((asked) => asked !== undefined);
}

function isNarrowed(query: Query): boolean {
  return query.path !== undefined || isSearch(query);
}

/** Not shared among requests: it ends when its client disconnects. What was walked is kept. */
async function searchedBody(call: RepositoryCall, query: Query): Promise<EncodedBody | Refused> {
  const signal = call.signal();
  const ofPath = query.path === undefined ? null : { path: parseQueryPath(call.target, 'path'), signal };
  const made = await makeBody(call, query, ofPath, searchOf(query, signal));
  return 'refused' in made ? made : made.body;
}

/** Returns null if only a path is asked for. */
function searchOf({ author = '', text = '', since, until }: Query, signal: AbortSignal): CommitSearch | null {
  if (author === '' && text === '' && since === undefined && until === undefined) return null;
  const times = { since: since ?? null, until: until ?? null };
  return { author: author === '' ? null : author, text: text === '' ? null : text, ...times, signal };
}

async function makeBody(
  { context, repository }: RepositoryCall,
  query: Query,
  ofPath: WantedPath | null,
  search: CommitSearch | null,
): Promise<MadeBody | Refused> {
  const { page, limit, ref = null } = query;
  const list = await listCommits(context, repository, { ref, ofPath, search, page: pageOf(query) });
  if ('refused' in list) return list;
  const { version, commits, total, hasMore, truncated } = list;
  const json: z.output<typeof COMMITS> = {
    branch: list.ref,
    commits: commits.map((row) => commitObject(context, repository.id, row)),
    pagination: { page, limit, total, has_more: hasMore || truncated },
  };
  const form = ofPath === null && search === null ? 'c2' : 'p2';
  return { key: keyOf(version, query), body: encodeJson(json, `"${version}${truncated ? '-cut' : ''}-${form}"`) };
}

async function getCommit(
  call: RepositoryCall,
  { params }: { readonly params: z.output<typeof COMMIT_PARAMS> },
): Promise<Outcome> {
  const { context, repository, request } = call;
  const wanted = { id: params.hexsha, shown: { bounds: COUNTED_ONLY }, signal: call.signal() };
  const found = await readCommit(context, repository, wanted);
  if ('refused' in found) return found;
  const { commit, diff } = found;
  const json: z.output<typeof CHANGED_COMMIT> = {
    ...commitObject(context, repository.id, commitRow(commit)),
    ...filesJson(diff),
  };
  // A commit never changes, but another time may have counted more.
  const form = diff.truncated.includes('time') ? 'm3-cut' : 'm3';
  return conditionalAnswer(encodeJson(json, `"${commit.id}-${form}"`), request.headers['if-none-match']);
}

type NewCommit = z.output<typeof NEW_COMMIT>;

function postCommit(call: RepositoryCall, { body }: { readonly body: NewCommit }): Promise<Outcome> {
  if (body.dry_run) return write(call, body, null);
  const { context, repository, contents } = call;
  return changedOnce(call, {
    operation: 'writeCommit',
    asked: contents.size === 0 ? body : { ...body, contents: digestible(contents) },
    change: (key) => write(call, body, key),
    async repeat(used): Promise<Outcome> {
      const written = await readWritten(context, repository, used);
      return written === null ? GONE : writtenAnswer(call, written);
    },
  });
}

/** The parts may come in another order with a repeat. */
function digestible(contents: RepositoryCall['contents']): readonly string[] {
  return [...contents].map(([name, { id }]) => `${id} ${name}`).toSorted();
}

async function write(call: RepositoryCall, body: NewCommit, key: PushKey | null): Promise<Outcome> {
  const { context, principal, repository, contents, origin, signal } = call;
  const { branch, expected, start = null, message } = body;
  const changes = changesOf(body.changes, contents);
  if ('faults' in changes) return problem(422, changes.faults);
  const refChanges = refChangesOf(branchRef(branch));
  const refusal = await refusedPush(context, principal, { refChanges, onlyDeletes: false });
  if (refusal !== null) return rateAnswer(refusal);
  const now = context.clock.now();
  const author = signatureOf(body.author, byAccount(call, now), now);
  const wanted: WantedCommit = {
    repository,
    branch,
    expected,
    start,
    message: withLineEnd(message),
    author,
    committer: signatureOf(body.committer, author, now),
    changes,
    allowEmpty: body.allow_empty,
    key,
    signal: signal(),
  };
  const outcome = body.dry_run
    ? await tryCommit(context, await origin(), wanted, COUNTED_ONLY)
    : await writeCommit(context, await origin(), wanted);
  if ('refused' in outcome) return outcome;
  if ('fault' in outcome) return notWritten(outcome.fault, changes);
  return 'diff' in outcome ? triedAnswer(outcome) : writtenAnswer(call, outcome);
}

function triedAnswer({ ref, before, tree, diff }: TriedCommit): Outcome {
  const json: z.output<typeof TRIED_COMMIT> = { ref, before: before ?? ZERO_OBJECT_ID, tree, ...filesJson(diff) };
  return ok(json);
}

function writtenAnswer(
  { context, repository }: RepositoryCall,
  { commit, ref, before, after, event }: WrittenCommit,
): Outcome {
  const json: z.output<typeof WRITTEN_COMMIT> = {
    commit: commitObject(context, repository.id, commit),
    ref,
    before: before ?? ZERO_OBJECT_ID,
    after: after ?? ZERO_OBJECT_ID,
    event_id: event,
  };
  return ok(json, event === null ? 200 : 201);
}
