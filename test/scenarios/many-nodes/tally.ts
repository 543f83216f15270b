/** What happened on the nodes, for the line at the end of the scenario. */

export interface Tally {
  /** Answered with success: none may be missing afterwards. */
  written: number;
  /** Answered, each checked against what was written before it was asked. */
  read: number;
  /** Broken connections and 503: nothing is known of such a write. */
  unanswered: number;
  killed: number;
}

export function newTally(): Tally {
  return { written: 0, read: 0, unanswered: 0, killed: 0 };
}
