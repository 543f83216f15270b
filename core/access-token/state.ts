/** An access token as its stream says. */
import type { AccountId, RepositoryId, Timestamp } from '../kernel/ids.ts';
import type { Grant, Scope } from '../kernel/grants.ts';

export interface ActiveAccessToken {
  readonly status: 'active';
  readonly account: AccountId;
  readonly name: string;
  readonly scope: Scope;
  readonly grants: readonly Grant[];
  readonly repositoryIds: readonly RepositoryId[];
  readonly expiresAt: Timestamp | null;
  readonly secretHash: string;
  readonly tokenPrefix: string;
  readonly createdAt: Timestamp;
}

export type AccessToken =
  | { readonly status: 'absent' }
  | ActiveAccessToken
  | { readonly status: 'revoked'; readonly account: AccountId };

/** Whether the token's scope includes a repository. */
export function reaches(token: ActiveAccessToken, repository: RepositoryId): boolean {
  return token.scope === 'ALL_REPO' || token.repositoryIds.includes(repository);
}

export function isExpired(token: ActiveAccessToken, now: Timestamp): boolean {
  return token.expiresAt !== null && token.expiresAt <= now;
}
