/** Repositories: list, create, read, change, delete. */
import type { z } from 'zod';
import type { RepositoryRow } from '../../../core/ports/repository-lists.ts';
import { selectionOf } from '../../../core/use-cases/callers/principal.ts';
import { listRepositories, repositoryRow } from '../../../core/use-cases/repositories/list-repositories.ts';
import {
  changeRepository,
  createRepository,
  deleteRepository,
} from '../../../core/use-cases/repositories/repositories.ts';
import { noContent, ok } from '../http/answer.ts';
import {
  type AccountCall,
  accountRoute,
  type Outcome,
  type RepositoryCall,
  type Route,
  repositoryRoute,
} from '../route.ts';
import { PAGE_QUERY, pageOf, paginationOf } from '../schemas/common.ts';
import { REPOSITORY_PARAMS } from '../schemas/params.ts';
import { NEW_REPOSITORY, REPOSITORIES, REPOSITORY, REPOSITORY_CHANGES } from '../schemas/repositories.ts';

export const REPOSITORY_ROUTES: readonly Route[] = [
  accountRoute({
    operationId: 'listRepositories',
    tag: 'Repositories',
    summary: 'List repositories',
    description: 'The repositories in the scope of the token, sorted by name without regard to case.',
    method: 'GET',
    path: '/v1/repositories',
    grant: 'API_REPOS_READ',
    schemas: { query: PAGE_QUERY },
    answers: { 200: REPOSITORIES },
    problems: [],
    handle: getRepositories,
  }),
  accountRoute({
    operationId: 'createRepository',
    tag: 'Repositories',
    summary: 'Create a repository',
    method: 'POST',
    path: '/v1/repositories',
    grant: 'API_REPOS_WRITE',
    scope: 'ALL_REPO',
    schemas: { body: NEW_REPOSITORY },
    answers: { 201: REPOSITORY },
    problems: [404, 409],
    handle: postRepository,
  }),
  repositoryRoute({
    operationId: 'getRepository',
    tag: 'Repositories',
    summary: 'Read a repository',
    method: 'GET',
    path: '/v1/repos/{username}/{name}',
    grant: 'API_REPOS_READ',
    schemas: { params: REPOSITORY_PARAMS },
    answers: { 200: REPOSITORY },
    problems: [],
    handle: getRepository,
  }),
  repositoryRoute({
    operationId: 'updateRepository',
    tag: 'Repositories',
    summary: 'Change the name, the description or the default branch',
    description:
      'Fields that are absent stay as they are. The default branch may be one that does not exist yet. A token of the scope `SELECTED_REPO` takes no name that leads to another repository.',
    method: 'PATCH',
    path: '/v1/repos/{username}/{name}',
    grant: 'API_REPOS_WRITE',
    schemas: { params: REPOSITORY_PARAMS, body: REPOSITORY_CHANGES },
    answers: { 200: REPOSITORY },
    problems: [409],
    standing: getRepository,
    handle: patchRepository,
  }),
  repositoryRoute({
    operationId: 'deleteRepository',
    tag: 'Repositories',
    summary: 'Delete a repository',
    description: 'The name can be used again immediately.',
    method: 'DELETE',
    path: '/v1/repos/{username}/{name}',
    grant: 'API_REPOS_WRITE',
    schemas: { params: REPOSITORY_PARAMS },
    answers: { 204: null },
    problems: [],
    handle: removeRepository,
  }),
];

type RepositoryObject = z.output<typeof REPOSITORY>;

async function getRepositories(
  { context, principal, position }: AccountCall,
  { query }: { readonly query: z.output<typeof PAGE_QUERY> },
): Promise<Outcome> {
  const { account } = principal;
  const wanted = { account, selection: selectionOf(principal), seen: position, page: pageOf(query) };
  const { items, total } = await listRepositories(context, wanted);
  const { webUrl } = context.addresses();
  const list: z.output<typeof REPOSITORIES> = {
    repositories: items.map((row) => repositoryObject(row, webUrl)),
    pagination: paginationOf(query, total),
  };
  return ok(list);
}

async function postRepository(
  { context, origin }: AccountCall,
  { body }: { readonly body: z.output<typeof NEW_REPOSITORY> },
): Promise<Outcome> {
  const created = await createRepository(context, await origin(), {
    name: body.name,
    description: body.description ?? null,
    defaultBranch: body.default_branch ?? null,
    // Null is platform storage, whatever the account's default is.
    storageBucketId: body.storage_bucket_id === undefined ? 'default' : body.storage_bucket_id,
  });
  if ('refused' in created) return created;
  return ok(repositoryObject(repositoryRow(created), context.addresses().webUrl), 201);
}

async function getRepository({ context, repository }: RepositoryCall): Promise<Outcome> {
  return ok(repositoryObject(repositoryRow(repository), context.addresses().webUrl));
}

async function patchRepository(
  { context, principal, repository, origin }: RepositoryCall,
  { body }: { readonly body: z.output<typeof REPOSITORY_CHANGES> },
): Promise<Outcome> {
  // Else it could lead what others use elsewhere, beyond the repositories that it was given.
  const takesFormerNames = selectionOf(principal).scope === 'ALL_REPO';
  const changed = await changeRepository(context, await origin(), repository.id, {
    ...(body.name === undefined ? {} : { rename: { name: body.name, takesFormerNames } }),
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.default_branch === undefined ? {} : { defaultBranch: body.default_branch }),
  });
  if ('refused' in changed) return changed;
  return ok(repositoryObject(repositoryRow(changed), context.addresses().webUrl));
}

async function removeRepository({ context, repository, origin }: RepositoryCall): Promise<Outcome> {
  const deleted = await deleteRepository(context, await origin(), repository.id);
  return 'refused' in deleted ? deleted : noContent();
}

export function repositoryObject(row: RepositoryRow, webUrl: string): RepositoryObject {
  const fullName = `${row.username}/${row.name}`;
  return {
    id: row.id,
    name: row.name,
    username: row.username,
    full_name: fullName,
    description: row.description,
    default_branch: row.defaultBranch,
    html_url: `${webUrl}/${fullName}`,
    clone_url: `${webUrl}/r/${fullName}.git`,
    owner: { id: row.accountId, username: row.username },
    storage_bucket_id: row.storageBucketId,
    size_bytes: row.sizeBytes,
    created_at: row.createdAt,
    pushed_at: row.pushedAt,
  };
}
