/** Counts what happened on the nodes, for the summary at the end of the scenario. */

export interface Tally {
  /** Writes answered with success: none of them may be missing afterwards. */
  written: number;
  /** Reads answered, each checked against the writes that were acknowledged before it. */
  read: number;
  /** Broken connections and 503s: whether such a write took effect is unknown. */
  unanswered: number;
  killed: number;
}

export function newTally(): Tally {
  return { written: 0, read: 0, unanswered: 0, killed: 0 };
}
