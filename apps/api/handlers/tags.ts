/** Tags: the listing, whose bytes are made once for each page and revision of a repository, and new ones. */
import type { z } from 'zod';
import { objectId } from '../../../core/kernel/ids.ts';
import { withLineEnd } from '../../../core/kernel/text.ts';
import type { RefFault } from '../../../core/use-cases/pushing/change-refs.ts';
import { type CreatedTag, createTag, readTag } from '../../../core/use-cases/pushing/create-tag.ts';
import type { PushKey } from '../../../core/use-cases/pushing/push-refs.ts';
import { type ListedTag, listTagPage } from '../../../core/use-cases/reading/list-tag-page.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import { tagText } from '../../../core/use-cases/reading/resolve-ref.ts';
import { refChangesOf } from '../../front-door/callers.ts';
import { refusedPush } from '../../front-door/changes.ts';
import { reasonOf } from '../../front-door/texts/ref-faults.ts';
import { byAccount, signatureOf } from '../authors.ts';
import { conditionalAnswer, encodeJson, type MadeBody } from '../body-cache.ts';
import { changedOnce, GONE } from '../changed-once.ts';
import { commitObject } from '../commit-json.ts';
import { rateAnswer } from '../denials.ts';
import { explained, ok, problem } from '../http/answer.ts';
import { movedJson } from '../ref-faults.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { PAGE_QUERY, pageOf, paginationOf } from '../schemas/common.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';
import { REF_NOT_CHANGED } from '../schemas/refs.ts';
import { CREATED_TAG, NEW_TAG, TAGS } from '../schemas/tags.ts';

export const TAG_ROUTES: readonly Route[] = [
  repositoryRoute({
    operationId: 'listTags',
    tag: 'Code',
    summary: 'List tags',
    method: 'GET',
    path: '/v1/repos/{username}/{name}/tags',
    grant: 'API_COMMITS_READ',
    schemas: { params: REPOSITORY_PARAMS, query: PAGE_QUERY },
    answers: { 200: TAGS },
    problems: [304],
    handle: getTags,
  }),
  repositoryRoute({
    operationId: 'createTag',
    tag: 'Git data',
    summary: 'Create a tag',
    description:
      'With a `message` an annotated tag, else a lightweight one, which is only a ref below `refs/tags/`. It is a push. 409 if there is a tag of this name already. The tag is not signed.',
    method: 'POST',
    path: '/v1/repos/{username}/{name}/tags',
    push: true,
    grant: 'GIT_HTTP_WRITE',
    schemas: { params: REPOSITORY_PARAMS, body: NEW_TAG },
    answers: { 201: CREATED_TAG },
    problems: [409, 410],
    refusal: REF_NOT_CHANGED,
    handle: postTag,
  }),
];

type Query = z.output<typeof PAGE_QUERY>;
type Tag = z.output<typeof TAGS>['tags'][number];

async function getTags(call: RepositoryCall, { query }: { readonly query: Query }): Promise<Outcome> {
  const { context, repository, request } = call;
  const body = await context.bodies.getOrMake(keyOf(versionOf(repository), query), () => makeBody(call, query));
  return 'refused' in body ? body : conditionalAnswer(body, request.headers['if-none-match']);
}

function keyOf(version: string, { page, limit }: Query): string {
  return `tags ${version} ${page} ${limit}`;
}

async function makeBody({ context, repository }: RepositoryCall, query: Query): Promise<MadeBody> {
  const wanted = { search: '', order: 'name', page: pageOf(query) } as const;
  const { version, tags } = await listTagPage(context, repository, wanted);
  const json: z.output<typeof TAGS> = {
    tags: tags.items.map((tag) => tagJson({ context, repository }, tag)),
    pagination: paginationOf(query, tags.total),
  };
  return { key: keyOf(version, query), body: encodeJson(json, `"${version}-t2"`) };
}

function tagJson(
  { context, repository }: Pick<RepositoryCall, 'context' | 'repository'>,
  { name, target, type, annotation, commit }: ListedTag,
): Tag {
  const tagger = annotation?.tagger ?? null;
  return {
    name,
    target,
    type,
    annotated: annotation !== null,
    message: annotation?.message ?? null,
    tagger: tagger === null ? null : { name: tagger.name, email: tagger.email },
    commit: commit === null ? null : commitObject(context, repository.id, commit),
  };
}

type NewTag = z.output<typeof NEW_TAG>;

function postTag(call: RepositoryCall, { body }: { readonly body: NewTag }): Promise<Outcome> {
  const { context, repository } = call;
  return changedOnce(call, {
    operation: 'createTag',
    asked: body,
    change: (key) => create(call, body, key),
    async repeat({ event, data }): Promise<Outcome> {
      const [made] = data.updates;
      if (made === undefined) throw new TypeError('A new tag is one update');
      const tag = await readTag(context, { repository, name: body.name, target: objectId(made.after) });
      return tag === null ? GONE : createdAnswer(call, { tag, event });
    },
  });
}

function createdAnswer(call: RepositoryCall, { tag, event }: CreatedTag): Outcome {
  const json: z.output<typeof CREATED_TAG> = { ...tagJson(call, tag), event_id: event };
  return ok(json, 201);
}

async function create(call: RepositoryCall, body: NewTag, key: PushKey | null): Promise<Outcome> {
  const { context, principal, repository, origin, signal } = call;
  const refChanges = refChangesOf(tagText(body.name));
  const refusal = await refusedPush(context, principal, { refChanges, onlyDeletes: false });
  if (refusal !== null) return rateAnswer(refusal);
  const { name, target, expected, message } = body;
  const now = context.clock.now();
  const annotation =
    message === undefined
      ? null
      : { message: withLineEnd(message), tagger: signatureOf(body.tagger, byAccount(call, now), now) };
  const wanted = { repository, name, target, expected, annotation, key, signal: signal() };
  const created = await createTag(context, await origin(), wanted);
  if ('refused' in created) return created;
  if ('fault' in created) return notCreated(created.fault);
  return createdAnswer(call, created);
}

/** What is wrong with the target. */
const OF_TARGET: ReadonlySet<string> = new Set<RefFault['code']>(['object-missing', 'tag-too-deep']);

function notCreated(fault: RefFault): Outcome {
  if (fault.head !== null) return explained(409, { detail: `${fault.ref}: ${reasonOf(fault)}`, ...movedJson(fault) });
  const field = OF_TARGET.has(fault.code) ? 'target' : fault.code === 'objects-refused' ? 'message' : 'name';
  return problem(422, [{ loc: ['body', field], msg: reasonOf(fault), type: fault.code }]);
}
