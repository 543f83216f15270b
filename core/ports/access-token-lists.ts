/** Lists of access tokens, read from a read model. */
import type { LogPosition } from '../kernel/envelope.ts';
import type { Grant, Scope } from '../kernel/grants.ts';
import type { AccessTokenId, AccountId, RepositoryId, Timestamp } from '../kernel/ids.ts';

export interface AccessTokenRow {
  readonly id: AccessTokenId;
  readonly name: string;
  readonly scope: Scope;
  readonly grants: readonly Grant[];
  readonly repositoryIds: readonly RepositoryId[];
  readonly expiresAt: Timestamp | null;
  readonly createdAt: Timestamp;
  readonly tokenPrefix: string;
}

export interface AccessTokenLists {
  /** Returns the account's active tokens, newest first, without those that expired before `now`. */
  accessTokens(account: AccountId, now: Timestamp): Promise<readonly AccessTokenRow[]>;
  /** Counts those tokens, and the repositories that each of them lists, without the token `besides`. */
  accessTokenSums(account: AccountId, now: Timestamp, besides: AccessTokenId | null): Promise<AccessTokenSums>;
}

export interface AccessTokenSums {
  readonly tokens: number;
  readonly repositories: number;
}

export interface KnownTokens {
  /** Returns those of these ids that are tokens and were not revoked before the position. */
  tokensAmong(ids: readonly AccessTokenId[], position: LogPosition): Promise<ReadonlySet<AccessTokenId>>;
}
