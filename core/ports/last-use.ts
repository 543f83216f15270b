/** When each token was last used, to the minute. It is not in the log, so a rebuild from the log loses it. */
import type { AccessTokenId, Timestamp } from '../kernel/ids.ts';

export interface LastUse {
  /** Records a use in memory. The adapter writes it at most once a minute, not while the request waits. */
  touch(token: AccessTokenId): void;
  /** Returns the last use of each token that was used, including uses that this node has not written yet. */
  lastUsedAt(tokens: readonly AccessTokenId[]): Promise<ReadonlyMap<AccessTokenId, Timestamp>>;
}
