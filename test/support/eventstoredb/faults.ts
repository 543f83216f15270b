/** The faults that a test can switch on in the protocol server. Each was observed in EventStoreDB or its connection. */

/** What the server does wrong with one append. */
export type AppendFault =
  /** The server commits it and never answers. */
  | 'lose-answer'
  /** The server commits it and answers late. */
  | 'answer-late'
  /** The server neither commits nor answers it. */
  | 'stall'
  /** The server ends the BatchAppend call without an error and does not commit the append. */
  | 'half-close'
  /** Does what `half-close` does, after it committed the append. */
  | 'commit-and-half-close'
  /** The server answers that its own time for the write is over, and does not commit the append. */
  | 'time-out'
  | 'commit-and-time-out'
  /** The server ends all its connections and starts again immediately. */
  | 'restart'
  | 'commit-and-restart'
  | 'access-denied'
  /** The server commits it and answers without a position, as EventStoreDB can for an append it has stored already. */
  | 'no-position';

export interface Faults {
  /** Called for every append before the server handles it. */
  append: ((stream: string, ids: readonly string[]) => AppendFault | null) | null;
  /** True while the server takes calls and answers none. */
  stalled: boolean;
  /** Called for every read and subscription; the server waits for it and answers with the code that it throws. */
  read: ((what: 'stream' | 'all' | 'subscription', stream: string) => Promise<void> | void) | null;
  /** Returns the gRPC status that the request for server features fails with; the client throws it as a raw error. */
  features: (() => number | null) | null;
  /** The port of the leader while this node is a follower; null when this node leads. */
  leaderPort: number | null;
  /** How far the server's clock is ahead of the client's. */
  clockAheadMs: number;
  /** True while open subscriptions send nothing. */
  mute: boolean;
  /** What the server refuses every new call for: the user's password is another now, or a right was taken away. */
  refuses: 'credentials' | 'right' | null;
  /**
   * Called for every read: how many of the last events it does not show yet. EventStoreDB shows an append's events
   * while it stores them, so a read may end inside an append.
   */
  unseen: (() => number) | null;
}

export function noFaults(): Faults {
  return {
    ...{ append: null, stalled: false, read: null, features: null, leaderPort: null, clockAheadMs: 0, mute: false },
    ...{ refuses: null, unseen: null },
  };
}
