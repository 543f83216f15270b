/** What can be asked of an access token. */
import type { AccountId, RepositoryId, Timestamp } from '../kernel/ids.ts';
import type { Grant, Scope } from '../kernel/grants.ts';

export interface AccessTokenSettings {
  readonly name: string;
  readonly scope: Scope;
  readonly grants: readonly Grant[];
  readonly repositoryIds: readonly RepositoryId[];
  readonly expiresAt: Timestamp | null;
}

export type AccessTokenCommand =
  | {
      readonly type: 'CreateAccessToken';
      readonly account: AccountId;
      readonly settings: AccessTokenSettings;
      /** Whether the account has such a repository now. */
      readonly ownsRepository: (id: RepositoryId) => boolean;
      readonly secretHash: string;
      readonly tokenPrefix: string;
      readonly now: Timestamp;
    }
  | {
      readonly type: 'UpdateAccessToken';
      readonly changes: Partial<AccessTokenSettings>;
      readonly ownsRepository: (id: RepositoryId) => boolean;
      readonly now: Timestamp;
    }
  | { readonly type: 'RevokeAccessToken' };
