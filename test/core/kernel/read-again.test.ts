/** Bodies that are read more than once. */
import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { test } from 'vitest';
import { canReadAgain, readAgain } from '../../../core/kernel/read-again.ts';

async function* letters(): AsyncGenerator<string> {
  yield 'a';
  yield 'b';
}

test('A body that can be read again begins at its first item each time', async () => {
  const body = readAgain(letters);
  assert.equal(canReadAgain(body), true);
  for await (const letter of body) {
    assert.equal(letter, 'a');
    break;
  }
  assert.deepEqual(await Array.fromAsync(body), ['a', 'b']);
});

test('A generator or a stream cannot be read again, and asking reads nothing of it', async () => {
  for (const body of [letters(), Readable.from(['a', 'b'])]) {
    assert.equal(canReadAgain(body), false);
    assert.deepEqual(await Array.fromAsync(body), ['a', 'b']);
  }
});
