/**
 * Removes operational streams from the log.
 *
 * Invariants: a stream is removed whole or not at all. What is removed lies before the log's last record event, so the
 * head never falls and no position is used twice. No stream of another category, and none with a record event, can be
 * removed.
 */
import type { StreamName } from '../kernel/envelope.ts';
import type { Timestamp } from '../kernel/ids.ts';

/** The categories of operational streams. On PostgreSQL the function `prune_stream` lists them. */
export const PRUNABLE_CATEGORIES: readonly string[] = ['webhookDelivery', 'transfer', 'signIn', 'bucketErrors'];

export interface PrunableStream {
  readonly stream: StreamName;
  /** The revision of its last event, as the caller has read it. A stream that has grown since stays. */
  readonly lastRevision: number;
}

export interface LogPruning {
  /** Resolves false if the stream stays: it grew, is younger, or no record event follows it yet. */
  prune(stream: PrunableStream, olderThan: Timestamp): Promise<boolean>;
}
