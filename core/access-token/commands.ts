/** The commands of an access token. */
import type { Grant, Scope } from '../kernel/grants.ts';
import type { AccountId, RepositoryId, Timestamp } from '../kernel/ids.ts';
import type { VaultRef } from '../kernel/vault-ref.ts';
import type { ExchangedToken } from './state.ts';

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
      readonly type: 'ExchangeIdentityToken';
      readonly token: Omit<ExchangedToken, 'status' | 'createdAt'> & {
        /** A vault reference of the identity token's subject. */
        readonly subjectRef: VaultRef;
      };
    }
  | {
      readonly type: 'UpdateAccessToken';
      readonly changes: Partial<AccessTokenSettings>;
      readonly ownsRepository: (id: RepositoryId) => boolean;
      readonly now: Timestamp;
    }
  | { readonly type: 'RevokeAccessToken' };
