/**
 * Watches how fast a client reads an answer that holds something dear while it is read.
 *
 * Invariants: only the time that the chunks wait for their reader counts, not the time to make them, and none after
 * nothing dear is held any more.
 */
import { KIB } from '../../core/kernel/byte-units.ts';

/**
 * How long git may wait for the reader of an archive, or of the text of a commit; what the reader takes at the slowest
 * rate earns as much again.
 */
export const ARCHIVE_READER_WAIT_MS = 10_000;
export const ARCHIVE_READER_BYTES_PER_SECOND_MIN = 128 * KIB;

export interface ReaderPace {
  /** How long the chunks may wait for their reader. */
  readonly waitMs: number;
  /** What the reader takes earns this time again, up to `waitMs`, as if it had read it this fast. */
  readonly bytesPerSecondMin: number;
  /** Whether the answer holds nothing dear any more. */
  readonly isOver: () => boolean;
}

export const ARCHIVE_PACE: Omit<ReaderPace, 'isOver'> = {
  waitMs: ARCHIVE_READER_WAIT_MS,
  bytesPerSecondMin: ARCHIVE_READER_BYTES_PER_SECOND_MIN,
};

/** Yields the chunks; calls `onSlow` while one waits longer than the reader's time. */
export async function* watchPace(
  chunks: AsyncIterable<Uint8Array>,
  { waitMs, bytesPerSecondMin, isOver }: ReaderPace,
  onSlow: () => void,
): AsyncGenerator<Uint8Array> {
  let leftMs = waitMs;
  for await (const chunk of chunks) {
    const sinceMs = performance.now();
    const timer = setTimeout(() => {
      if (!isOver()) onSlow();
    }, leftMs);
    try {
      yield chunk;
    } finally {
      clearTimeout(timer);
    }
    const earnedMs = (chunk.length / bytesPerSecondMin) * 1_000;
    leftMs = Math.min(waitMs, Math.max(0, leftMs - (performance.now() - sinceMs)) + earnedMs);
  }
}
