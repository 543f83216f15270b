/** How slowly a client may read what is dear to hold. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import {
  ARCHIVE_READER_BYTES_PER_SECOND_MIN,
  ARCHIVE_READER_WAIT_MS,
  watchPace,
} from '../../../apps/front-door/reader-pace.ts';

/** That of the reader of an archive. */
const PACE = {
  waitMs: ARCHIVE_READER_WAIT_MS,
  bytesPerSecondMin: ARCHIVE_READER_BYTES_PER_SECOND_MIN,
  isOver: () => false,
};
/** What the slowest reader takes in a second. */
const CHUNK = new Uint8Array(ARCHIVE_READER_BYTES_PER_SECOND_MIN);

describe('The pace of a reader', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  /** Reads chunks with a wait after each; returns how many it had read when it was found slow, or null. */
  async function read(waitsMs: readonly number[], makingMs = 0, overAt = Infinity): Promise<number | null> {
    async function* chunks(): AsyncGenerator<Uint8Array> {
      for (const _ of waitsMs) {
        await vi.advanceTimersByTimeAsync(makingMs);
        yield CHUNK;
      }
    }
    let count = 0;
    let slowAt: number | null = null;
    const watched = watchPace(chunks(), { ...PACE, isOver: () => count >= overAt }, () => {
      slowAt ??= count;
    });
    for await (const _ of watched) {
      count += 1;
      await vi.advanceTimersByTimeAsync(waitsMs[count - 1] ?? 0);
    }
    return slowAt;
  }

  test('may rest for the time that it has, and no longer', async () => {
    assert.equal(await read([9_999]), null);
    assert.equal(await read([10_000]), 1);
  });

  test('may be as slow as the slowest for any time, and no slower', async () => {
    assert.equal(await read(Array.from({ length: 100 }, () => 1_000)), null);
    assert.equal(await read(Array.from({ length: 30 }, () => 1_500)), 18);
  });

  test('saves up no more than the time that it had at first', async () => {
    assert.equal(await read([...Array.from({ length: 100 }, () => 0), 9_999]), null);
    assert.equal(await read([...Array.from({ length: 100 }, () => 0), 10_000]), 101);
  });

  test('is not that of the one who makes what it reads', async () => {
    assert.equal(await read([0, 0, 0, 5_000], 60_000), null);
  });

  test('matters no more when nothing dear is held', async () => {
    assert.equal(await read([0, 60_000], 0, 2), null);
    assert.equal(await read([60_000, 0], 0, 2), 1);
  });

  test('ends with the reading', async () => {
    vi.useRealTimers();
    let slow = false;
    const chunks = watchPace(
      (async function* () {
        yield CHUNK;
        yield CHUNK;
      })(),
      { ...PACE, waitMs: 5 },
      () => {
        slow = true;
      },
    );
    await chunks.next();
    await chunks.return(undefined);
    await sleep(20);
    assert.equal(slow, false);
  });
});
