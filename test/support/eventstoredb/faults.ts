/** What a test makes the protocol server do wrong. All of it was seen of EventStoreDB, or of its client on the way. */

/** What becomes of one append. */
export type AppendFault =
  /** It is committed, and never answered. */
  | 'lose-answer'
  /** It is committed, and answered late. */
  | 'answer-late'
  /** Nothing happens to it, ever. */
  | 'stall'
  /** The server ends the stream of batches in the middle, without an error; this append is not committed. */
  | 'half-close'
  /** As `half-close`, after the commit. */
  | 'commit-and-half-close'
  /** The server's own time for writes is over; the append is not committed. */
  | 'time-out'
  | 'commit-and-time-out'
  /** The process dies with all its connections, and is there again at once. */
  | 'restart'
  | 'commit-and-restart'
  | 'access-denied'
  /** The answer names no position, as for an append that was found again without its place. */
  | 'no-position';

export interface Faults {
  /** Asked for every append before anything happens to it. */
  append: ((stream: string, ids: readonly string[]) => AppendFault | null) | null;
  /** Every call is taken and none is answered. */
  stalled: boolean;
  /** Reads are answered only after this was settled; what it throws, a code and details, is their answer. */
  read: ((what: 'stream' | 'all' | 'subscription', stream: string) => Promise<void> | void) | null;
  /** A gRPC status for the question what the server can do; the client gives this error as it is. */
  features: (() => number | null) | null;
  /** Where the leader is, when this node is not. */
  leaderPort: number | null;
  /** How far this machine's clock is ahead of the client's. */
  clockAheadMs: number;
  /** Subscriptions stay open and bring nothing more. */
  mute: boolean;
}

export function noFaults(): Faults {
  return { append: null, stalled: false, read: null, features: null, leaderPort: null, clockAheadMs: 0, mute: false };
}
