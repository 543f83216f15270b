/** How a stream is read back to its first event. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readBack } from '../../../core/runtime/read-back.ts';
import { pagedStream } from '../../support/paged-stream.ts';

describe('a stream that is read back', () => {
  /** Appends of these sizes. */
  async function streamOf(...counts: readonly number[]) {
    const { stream, events, from } = await pagedStream(...counts);
    const revisions = async (start: number, countMax = Number.POSITIVE_INFINITY) => {
      const read: number[] = [];
      for await (const event of readBack(events, stream, start)) {
        read.push(event.revision);
        if (read.length === countMax) break;
      }
      return read;
    };
    return { from, revisions };
  }

  test('yields every event once, the newest first, also where a page ends with a whole append', async () => {
    const { from, revisions } = await streamOf(60, 3, 98, 40);
    assert.deepEqual(
      await revisions(200),
      Array.from({ length: 201 }, (_, index) => 200 - index),
    );
    assert.deepEqual(from, [200, 62], 'a page takes the whole append that its hundredth event is in');
    assert.deepEqual(await revisions(1), [1, 0]);
    assert.deepEqual(await revisions(-1), []);
    const long = await streamOf(...Array.from({ length: 101 }, () => 1));
    assert.equal((await long.revisions(100)).at(-1), 0, 'the first event alone on the last page');
    assert.deepEqual(long.from, [100, 0]);
  });

  test('reads no further page for a reader that stops', async () => {
    const { from, revisions } = await streamOf(...Array.from({ length: 150 }, () => 1));
    assert.deepEqual(
      await revisions(149, 100),
      Array.from({ length: 100 }, (_, index) => 149 - index),
    );
    assert.deepEqual(from, [149]);
  });
});
