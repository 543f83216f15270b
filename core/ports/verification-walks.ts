/**
 * How far the verification in the background has walked: what all workers of a service share.
 *
 * Invariants: at most one process holds a walk at a time, by the database's clock. Whoever lost a walk saves nothing.
 */
import type { Timestamp } from '../kernel/ids.ts';

/**
 * `week` reads the log, and asks for each vault record and for the size of each layer. `month` reads the bytes of each
 * layer.
 */
export type Walk = 'week' | 'month';

export interface WalkProgress {
  /** When the last round began, whether it is over or under way; null before the first. */
  readonly begunAt: Timestamp | null;
  /** Where the round under way goes on; null when it is over. */
  readonly cursor: string | null;
  /** When the last round that is over began; null before the first is over. */
  readonly wholeSince: Timestamp | null;
}

/**
 * For how long a walk stays with a process that saves nothing, such as one that was killed. Internal: only then another
 * waits.
 */
export const WALK_HELD_MS = 10 * 60_000;

/** Each call rejects when the database cannot be reached. */
export interface VerificationWalks {
  /** Takes the walk for the process, or keeps it for it, unless another process holds it. Returns the progress. */
  take(walk: Walk, process: string): Promise<WalkProgress & { readonly isHeld: boolean }>;
  /** Saves the progress and keeps the walk. Returns false if the process does not hold the walk any more. */
  save(walk: Walk, process: string, progress: WalkProgress): Promise<boolean>;
  /** Says that somebody who holds no walk walked a whole round, which began then. */
  walked(walk: Walk, since: Timestamp): Promise<void>;
}
