/** The commands of an access token. */
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
      /** Returns true for the id of a repository that the account has now. */
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
