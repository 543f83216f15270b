/** The state of an access token, folded from its stream. */
import type { AccountId, Timestamp } from '../kernel/ids.ts';
import type { Grant } from '../kernel/grants.ts';
import type { RepositorySelection } from './repository-selection.ts';

export interface ActiveAccessToken extends RepositorySelection {
  readonly status: 'active';
  readonly account: AccountId;
  readonly name: string;
  readonly grants: readonly Grant[];
  readonly expiresAt: Timestamp | null;
  readonly secretHash: string;
  readonly tokenPrefix: string;
  readonly createdAt: Timestamp;
}

export type AccessToken =
  | { readonly status: 'absent' }
  | ActiveAccessToken
  | { readonly status: 'revoked'; readonly account: AccountId };

export function isExpired(token: ActiveAccessToken, now: Timestamp): boolean {
  return token.expiresAt !== null && token.expiresAt <= now;
}
