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
import type { AccountCall, Outcome, RepositoryCall } from '../route.ts';
import { type PAGE_QUERY, pageOf, paginationOf } from '../schemas/common.ts';
import type { NEW_REPOSITORY, REPOSITORIES, REPOSITORY, REPOSITORY_CHANGES } from '../schemas/repositories.ts';

type RepositoryObject = z.output<typeof REPOSITORY>;

export async function getRepositories(
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

export async function postRepository(
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

export async function getRepository({ context, repository }: RepositoryCall): Promise<Outcome> {
  return ok(repositoryObject(repositoryRow(repository), context.addresses().webUrl));
}

export async function patchRepository(
  { context, repository, origin }: RepositoryCall,
  { body }: { readonly body: z.output<typeof REPOSITORY_CHANGES> },
): Promise<Outcome> {
  const changed = await changeRepository(context, await origin(), repository.id, {
    ...(body.description === undefined ? {} : { description: body.description }),
    ...(body.default_branch === undefined ? {} : { defaultBranch: body.default_branch }),
  });
  if ('refused' in changed) return changed;
  return ok(repositoryObject(repositoryRow(changed), context.addresses().webUrl));
}

export async function removeRepository({ context, repository, origin }: RepositoryCall): Promise<Outcome> {
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
