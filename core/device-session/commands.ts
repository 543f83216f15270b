/** The commands of a device login. */
import type { AccessTokenSettings } from '../access-token/commands.ts';
import type { AccessTokenId, AccountId, RepositoryId, Timestamp } from '../kernel/ids.ts';
import type { DecidedRequest } from './events.ts';

export type DeviceSessionCommand =
  | {
      readonly type: 'GrantDeviceLogin';
      readonly account: AccountId;
      /** What the stream begins with; null if it began with the request, or if there is no request. */
      readonly request: DecidedRequest | null;
      /** The settings of the token that the device will get. */
      readonly settings: AccessTokenSettings;
      /** Returns true for the id of a repository that the account has now. */
      readonly ownsRepository: (id: RepositoryId) => boolean;
      readonly now: Timestamp;
    }
  | {
      readonly type: 'DenyDeviceLogin';
      readonly account: AccountId;
      readonly request: DecidedRequest | null;
      readonly now: Timestamp;
    }
  | {
      readonly type: 'ClaimDeviceLogin';
      readonly tokenId: AccessTokenId;
      readonly tokenSecretHash: string;
      readonly tokenPrefix: string;
      readonly now: Timestamp;
    }
  | { readonly type: 'ExpireDeviceLogin'; readonly now: Timestamp }
  | { readonly type: 'CloseDeviceLogin' };
