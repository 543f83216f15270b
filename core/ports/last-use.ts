/**
 * When each token and each trust rule was last used, to the minute. It is not in the log, so a rebuild from the log
 * loses it.
 */
import type { AccessTokenId, Timestamp, TrustRuleId } from '../kernel/ids.ts';

/** A rule is used by an exchange, and by the tokens that it gave out, which live too short to be listed. */
export type Used = AccessTokenId | TrustRuleId;

export interface LastUse {
  /** Records a use in memory. The adapter writes it at most once a minute, not while the request waits. */
  touch(used: Used): void;
  /** Returns the last use of each that was used, including uses that this node has not written yet. */
  lastUsedAt(ids: readonly Used[]): Promise<ReadonlyMap<Used, Timestamp>>;
}
