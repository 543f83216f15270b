/** How a stream is read on from one of its events. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { readForward } from '../../../core/runtime/read-forward.ts';
import { pagedStream } from '../../support/paged-stream.ts';

const numbers = (first: number, last: number): readonly number[] =>
  Array.from({ length: last - first + 1 }, (_, index) => first + index);

describe('a stream that is read on', () => {
  test('yields every event from the revision on once, also where a page ends with a whole append', async () => {
    const { stream, events, from } = await pagedStream(60, 3, 98, 40);
    const revisions = async (start: number) =>
      Array.fromAsync(readForward(events, stream, start), ({ revision }) => revision);
    assert.deepEqual(await revisions(0), numbers(0, 200));
    assert.deepEqual(from, [0, 161], 'a page takes the whole append that its hundredth event is in');
    assert.deepEqual(await revisions(199), [199, 200]);
    assert.deepEqual(await revisions(201), []);
  });

  test('is read in the pages that a reader asks for, and no further than the reader goes', async () => {
    const { stream, events, from } = await pagedStream(...Array.from({ length: 30 }, () => 1));
    for await (const { revision } of readForward(events, stream, 0, 10)) if (revision === 19) break;
    assert.deepEqual(from, [0, 10]);
  });
});
