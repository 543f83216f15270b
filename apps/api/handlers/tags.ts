/** The tag listing, whose bytes are made once for each page and revision of a repository. */
import type { z } from 'zod';
import { type ListedTag, listTagPage } from '../../../core/use-cases/reading/list-tag-page.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import { conditionalAnswer, encodeJson, type MadeBody } from '../body-cache.ts';
import { commitObject } from '../commit-json.ts';
import { type Outcome, type RepositoryCall, type Route, repositoryRoute } from '../route.ts';
import { PAGE_QUERY, pageOf, paginationOf } from '../schemas/common.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';
import { TAGS } from '../schemas/tags.ts';

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
