/**
 * Contents of files that are too large for memory: they wait on this node's disk for the commit that takes them.
 *
 * Invariants: nothing of them is left when they were removed, or when the process has ended, in whatever way.
 */
import type { PackRefusal } from '../git/pack-refusal.ts';
import type { AccountId, ObjectId } from '../kernel/ids.ts';

/** A blob that lies on the disk as a pack stores it. Nothing has looked at it for an attack on SHA-1 yet. */
export interface StoredBlob {
  readonly id: ObjectId;
  readonly sizeBytes: number;
  /** Yields its bytes as a zlib stream. It may be called any number of times, until it is removed. */
  deflated(): AsyncIterable<Uint8Array>;
}

/** The contents of one commit. */
export interface HeldContents {
  /**
   * Takes a content, to its end. Refuses what is too large or has no room now. Throws the error of its source. One is
   * added after the other.
   */
  add(bytes: AsyncIterable<Uint8Array>): Promise<StoredBlob | PackRefusal>;
  /** Removes them all. Later calls do nothing. */
  remove(): Promise<void>;
}

export interface NewContents {
  /** They take at most `bytesMax` as a pack stores them. Nothing is on the disk before the first is added. */
  hold(of: { readonly account: AccountId; readonly bytesMax: number; readonly signal: AbortSignal }): HeldContents;
}
