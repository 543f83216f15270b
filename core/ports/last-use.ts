/** When each token was last used, to the minute: an operational figure, the one a rebuild may lose. */
import type { AccessTokenId, Timestamp } from '../kernel/ids.ts';

export interface LastUse {
  /** Notes a use in memory; written at most once a minute, not with the request. */
  touch(token: AccessTokenId): void;
  /** The last use of each token that has one, this node's unwritten ones included. */
  lastUsedAt(tokens: readonly AccessTokenId[]): Promise<ReadonlyMap<AccessTokenId, Timestamp>>;
}
