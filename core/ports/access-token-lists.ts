/** Lists of access tokens, read from a read model. */
import type { Grant, Scope } from '../kernel/grants.ts';
import type { LogPosition } from '../kernel/envelope.ts';
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
  /** Returns how many that are. */
  accessTokenCount(account: AccountId, now: Timestamp): Promise<number>;
}

export interface KnownTokens {
  /** Returns those of these ids that are tokens and were not revoked before the position. */
  tokensAmong(ids: readonly AccessTokenId[], position: LogPosition): Promise<ReadonlySet<AccessTokenId>>;
}
