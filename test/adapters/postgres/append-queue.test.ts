/** How many appends wait for PostgreSQL, and of how many bytes, while it does not answer. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  createAppendQueue,
  QUEUED_APPENDS_MAX,
  QUEUED_SIZE_BYTES_MAX,
} from '../../../adapters/postgres/append-queue.ts';
import { createClockWatch } from '../../../adapters/postgres/clock-difference.ts';
import { checkAppend } from '../../../core/ports/append-check.ts';
import type { AppendRequest } from '../../../core/ports/event-store.ts';
import { newEvent, newStream } from '../../support/events.ts';

const unsaid = () => undefined;
const LOG = { debug: unsaid, info: unsaid, warn: unsaid, error: unsaid };

/** Parts of it share its memory. */
const TEXT = Buffer.alloc(2_000_000, 'x').toString('latin1');

const requestOf = (length: number): AppendRequest => {
  return { stream: newStream(), expected: 'none', events: [newEvent({ data: { text: TEXT.slice(0, length) } })] };
};

/** A queue with one append on its way to a PostgreSQL that never answers. Returns whether one more may wait. */
async function hanging(): Promise<(length: number) => Promise<boolean>> {
  const queue = createAppendQueue({
    pool: { connect: () => new Promise<never>(() => undefined) },
    log: LOG,
    watch: createClockWatch({ nowMs: () => Date.now(), log: LOG }),
    ...{ retrySpanMs: 60_000, appender: null, own: { add: () => undefined } },
    ...{ onAppended: () => undefined, onAnswered: () => undefined },
  });
  const mayWait = (length: number): Promise<boolean> =>
    Promise.race([
      queue.append(requestOf(length)).then(
        () => true,
        () => false,
      ),
      new Promise<boolean>((resolve) => setImmediate(resolve, true)),
    ]);
  assert.ok(await mayWait(0));
  return mayWait;
}

describe('Appends that wait for PostgreSQL', () => {
  test('are as many as the limit, and one more is refused', async () => {
    const mayWait = await hanging();
    const waiting = await Promise.all(Array.from({ length: QUEUED_APPENDS_MAX }, () => mayWait(0)));
    assert.ok(waiting.every(Boolean));
    assert.equal(await mayWait(0), false);
  });

  test('have as many bytes as the limit, and one byte more is refused', async () => {
    const mayWait = await hanging();
    // The bytes of shorter texts are estimated.
    const longest = 1_000_000;
    const beside = checkAppend(requestOf(longest)).sizeBytes - longest;
    const lengthOf = (sizeBytes: number): number => sizeBytes - beside;
    let leftBytes = QUEUED_SIZE_BYTES_MAX;
    for (; leftBytes > 2 * (longest + beside); leftBytes -= longest + beside) assert.ok(await mayWait(longest));
    const half = Math.floor(leftBytes / 2);
    assert.ok(await mayWait(lengthOf(half)));
    assert.equal(await mayWait(lengthOf(leftBytes - half) + 1), false);
    assert.ok(await mayWait(lengthOf(leftBytes - half)));
  });
});
