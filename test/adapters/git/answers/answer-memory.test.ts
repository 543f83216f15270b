/** Answers in memory: how many bytes they take, who makes room for whom, and when they are gone. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import {
  type AnswerMemory,
  createAnswerMemory,
  type HeldBytes,
} from '../../../../adapters/git/answers/answer-memory.ts';

function fill(memory: AnswerMemory, key: string, sizeBytes: number, account = 'ada'): Promise<HeldBytes | null> {
  return memory.fill({ key, account, sizeBytes, read: async (into) => void into.fill(key) });
}

/** Resolves whether it was read in; nobody reads it then. */
async function keep(memory: AnswerMemory, key: string, sizeBytes: number, account = 'ada'): Promise<boolean> {
  const held = await fill(memory, key, sizeBytes, account);
  held?.release();
  return held !== null;
}

function taken(memory: AnswerMemory, key: string): HeldBytes {
  return memory.take(key) ?? assert.fail(`${key} is not in memory`);
}

function isHere(memory: AnswerMemory, key: string): boolean {
  const held = memory.take(key);
  held?.release();
  return held !== null;
}

describe('The memory of answers', () => {
  test('gives all readers of an answer the same bytes', async () => {
    const memory = createAnswerMemory({ bytesMax: 20, answerBytesMax: 10 });
    assert.equal(memory.take('a'), null);
    const first = await fill(memory, 'a', 4);
    const second = taken(memory, 'a');
    assert.equal(first?.bytes.toString(), 'aaaa');
    assert.equal(second.bytes, first.bytes);
    assert.equal(memory.sizeBytes(), 4);
  });

  test('takes an answer at the limit of one, and none that is a byte larger', async () => {
    const memory = createAnswerMemory({ bytesMax: 100, answerBytesMax: 10 });
    assert.equal(await keep(memory, 'a', 10), true);
    assert.equal(await keep(memory, 'b', 11), false);
    assert.equal(memory.sizeBytes(), 10);
  });

  test('lets those leave that were taken least lately, and holds its bound', async () => {
    const memory = createAnswerMemory({ bytesMax: 16, answerBytesMax: 4 });
    for (const [key, account] of [
      ['a', 'ada'],
      ['b', 'ada'],
      ['c', 'bob'],
      ['d', 'bob'],
    ] as const) {
      assert.equal(await keep(memory, key, 4, account), true);
    }
    assert.equal(memory.sizeBytes(), 16);
    assert.ok(isHere(memory, 'a'));
    assert.equal(await keep(memory, 'e', 1, 'eve'), true);
    assert.deepEqual(
      ['a', 'b', 'c', 'd', 'e'].filter((key) => isHere(memory, key)),
      ['a', 'c', 'd', 'e'],
    );
    assert.equal(memory.sizeBytes(), 13);
  });

  // The attack: an account reads many answers very slowly, so that what they take could not be given back.
  test('takes nothing in while all of it is read, and counts what left until its last reader has gone', async () => {
    const memory = createAnswerMemory({ bytesMax: 8, answerBytesMax: 4 });
    const ada = await fill(memory, 'a', 4);
    const again = taken(memory, 'a');
    const bob = await fill(memory, 'b', 4, 'bob');
    assert.equal(await fill(memory, 'c', 4, 'eve'), null);
    memory.forget('a');
    assert.equal(memory.take('a'), null);
    assert.equal(memory.sizeBytes(), 8, 'two still read it');
    ada?.release();
    ada?.release();
    assert.equal(memory.sizeBytes(), 8, 'one release a reader');
    assert.equal(again.bytes.toString(), 'aaaa');
    assert.equal(await fill(memory, 'c', 4, 'eve'), null);
    again.release();
    assert.equal(memory.sizeBytes(), 4);
    assert.equal(await keep(memory, 'c', 4, 'eve'), true);
    bob?.release();
    assert.ok(isHere(memory, 'b'));
  });

  test('gives an account half of it, in which only its own answers make room', async () => {
    const memory = createAnswerMemory({ bytesMax: 16, answerBytesMax: 8 });
    await keep(memory, 'other', 8, 'bob');
    await keep(memory, 'a', 4);
    await keep(memory, 'b', 4);
    assert.equal(await keep(memory, 'c', 4), true);
    assert.equal(isHere(memory, 'a'), false);
    const reading = [taken(memory, 'b'), taken(memory, 'c')];
    assert.equal(await keep(memory, 'd', 4), false);
    assert.ok(isHere(memory, 'other'));
    for (const held of reading) held.release();
    assert.equal(await keep(memory, 'd', 8), true);
    assert.deepEqual(
      ['other', 'b', 'c', 'd'].filter((key) => isHere(memory, key)),
      ['other', 'd'],
    );
  });

  test('is read in by one while others ask, and counts before it is read', async () => {
    const memory = createAnswerMemory({ bytesMax: 8, answerBytesMax: 8 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const filling = memory.fill({ key: 'a', account: 'ada', sizeBytes: 4, read: () => promise });
    assert.equal(memory.sizeBytes(), 4);
    assert.equal(memory.take('a'), null);
    assert.equal(await fill(memory, 'a', 4), null);
    resolve();
    (await filling)?.release();
    assert.ok(isHere(memory, 'a'));
  });

  test('keeps nothing that was forgotten while it was read in, though another reads it in again', async () => {
    const memory = createAnswerMemory({ bytesMax: 16, answerBytesMax: 4 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const filling = memory.fill({ key: 'a', account: 'ada', sizeBytes: 4, read: () => promise });
    memory.forget('a');
    const again = await fill(memory, 'a', 2);
    resolve();
    (await filling)?.release();
    assert.equal(taken(memory, 'a').bytes, again?.bytes);
    assert.equal(memory.sizeBytes(), 2);
  });

  test('gives the bytes back when an answer cannot be read in', async () => {
    const memory = createAnswerMemory({ bytesMax: 8, answerBytesMax: 4 });
    const read = () => Promise.reject(new Error('The disk is broken'));
    await assert.rejects(memory.fill({ key: 'a', account: 'ada', sizeBytes: 4, read }), /broken/);
    assert.equal(memory.sizeBytes(), 0);
    assert.equal(await keep(memory, 'a', 4), true);
  });
});
