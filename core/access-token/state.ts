/** The state of an access token, folded from its stream. */
import type { Grant } from '../kernel/grants.ts';
import type { AccountId, Timestamp, TrustRuleId } from '../kernel/ids.ts';
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

/** A token that an identity token was exchanged for. It has no name and is in no list. */
export interface ExchangedToken extends RepositorySelection {
  readonly status: 'exchanged';
  readonly account: AccountId;
  /** The rule that allowed the exchange, and the number of changes that it had seen then. */
  readonly trustRule: { readonly id: TrustRuleId; readonly epoch: number };
  /** A vault reference of the identity token's subject: the same for each exchange of the subject. */
  readonly subjectRef: string;
  readonly grants: readonly Grant[];
  readonly expiresAt: Timestamp;
  readonly secretHash: string;
  readonly tokenPrefix: string;
  readonly createdAt: Timestamp;
}

export type AccessToken =
  | { readonly status: 'absent' }
  | ActiveAccessToken
  | ExchangedToken
  | { readonly status: 'revoked'; readonly account: AccountId };

export function isExpired(token: Pick<ActiveAccessToken, 'expiresAt'>, now: Timestamp): boolean {
  return token.expiresAt !== null && token.expiresAt <= now;
}
