/**
 * The attack: many clones of different depths are begun and read by nobody. Each answer grew on disk as fast as git
 * made it, whatever the bound of the cache was: a bound of 64 MiB held 1,250 MB.
 */
import assert from 'node:assert/strict';
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import {
  type AnswerCache,
  createAnswerCache,
  type WantedAnswer,
} from '../../../../adapters/git/answers/answer-cache.ts';
import { createAnswerDiskBudget } from '../../../../adapters/git/answers/answer-disk-budget.ts';
import { createAnswerMemory } from '../../../../adapters/git/answers/answer-memory.ts';
import { eventually } from '../../../support/processes.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const CHUNK_BYTES = 16 * 1024;
const BOUND_BYTES = 64 * CHUNK_BYTES;
const NEVER = new AbortController().signal;

interface Made {
  readonly make: WantedAnswer['make'];
  chunks: number;
  paced: number;
  ended: boolean;
}

/** An answer of this many chunks, made as fast as they are taken. */
function answerOf(count: number, fill = 1): Made {
  const made: Made = {
    chunks: 0,
    paced: 0,
    ended: false,
    make: async function* (signal, pacing) {
      pacing.begun({ pace: async () => void (made.paced += 1) });
      try {
        for (let chunk = 0; chunk < count; chunk += 1) {
          signal.throwIfAborted();
          made.chunks += 1;
          yield Buffer.alloc(CHUNK_BYTES, (fill + chunk) % 256);
          await sleep(0);
        }
      } finally {
        made.ended = true;
      }
    },
  };
  return made;
}

const contentOf = (count: number, fill = 1): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, chunk) => Buffer.alloc(CHUNK_BYTES, (fill + chunk) % 256)));

async function newCache(context: TestContext, bytesMax = BOUND_BYTES) {
  const directory = path.join(await tempDir(context), 'answers');
  const onFault = (error: unknown): void => assert.fail(String(error));
  // Everybody reads from the disk.
  const memory = createAnswerMemory({ bytesMax: 0, answerBytesMax: 0 });
  const cache = await createAnswerCache({ directory, bytesMax, memory, onFault });
  const onDisk = async (): Promise<number> => {
    let bytes = 0;
    for (const name of await readdir(directory)) {
      bytes += await stat(path.join(directory, name)).then(
        ({ size }) => size,
        () => 0,
      );
    }
    return bytes;
  };
  return { cache, onDisk };
}

/** Reads the first chunk and then nothing, until `rest` is called. */
async function beginReading(answer: AsyncGenerator<Uint8Array>): Promise<{ rest(): Promise<Buffer> }> {
  const first = await answer.next();
  const parts = first.done === true ? [] : [Buffer.from(first.value)];
  return {
    rest: async () => {
      for await (const chunk of answer) parts.push(Buffer.from(chunk));
      return Buffer.concat(parts);
    },
  };
}

const follow = (cache: AnswerCache, key: string, account: string, { make }: Made, signal = NEVER) =>
  cache.follow({ key, account, signal, make });

describe('The disk budget of answers', () => {
  test('is never more than its bound, however many answers grow and nobody reads', async (context) => {
    const { cache, onDisk } = await newCache(context);
    await bytesOf(follow(cache, 'old', 'ada', answerOf(20)));
    const lengthOf = (index: number): number => (index < 4 ? 3 : 30);
    const answers = Array.from({ length: 12 }, (_, index) => answerOf(lengthOf(index), index));
    const readers = await Promise.all(
      answers.map((answer, index) => beginReading(follow(cache, `key ${index}`, `account ${index}`, answer))),
    );
    let most = 0;
    for (let look = 0; look < 50; look += 1) {
      most = Math.max(most, await onDisk());
      const { keptBytes, growingBytes } = cache.figures();
      assert.ok(keptBytes + growingBytes <= BOUND_BYTES, `${keptBytes} and ${growingBytes} are reserved`);
      await sleep(2);
    }
    assert.ok(most <= BOUND_BYTES, `${most} bytes on disk`);
    assert.ok(answers.some(({ ended }) => ended) && answers.some(({ ended }) => !ended));
    const waiting = answers.filter(({ ended }) => !ended);
    await eventually('who finds no room and is not read takes a slot for slow readers, once', () =>
      waiting.every(({ paced }) => paced === 1),
    );
    assert.equal(cache.figures().evictedBytes, 20 * CHUNK_BYTES, 'kept answers make room');
    const whole = await Promise.all(readers.map(({ rest }) => rest()));
    for (const [index, bytes] of whole.entries())
      assert.ok(bytes.equals(contentOf(lengthOf(index), index)), `answer ${index}`);
    await eventually('what nobody reads any more is given back', () => cache.figures().growingBytes === 0);
    assert.equal(cache.figures().madeBytes, (20 + 4 * 3 + 8 * 30) * CHUNK_BYTES);
  });

  // The attack: some accounts fill the disk for answers and the slots for slow readers. Clones of all others failed.
  test('that is full leaves quick readers no need for a slot of slow ones', async (context) => {
    const { cache } = await newCache(context, 0);
    const answer = answerOf(100);
    assert.ok((await bytesOf(follow(cache, 'key', 'ada', answer))).equals(contentOf(100)));
    assert.equal(answer.paced, 0);
  });

  test('is given back by an answer that nobody waits for any more', async (context) => {
    const { cache, onDisk } = await newCache(context);
    const gone = new AbortController();
    const answer = answerOf(10_000);
    const reading = await beginReading(follow(cache, 'key', 'ada', answer, gone.signal));
    assert.ok(cache.figures().growingBytes > 0);
    gone.abort(new Error('gone'));
    await assert.rejects(reading.rest(), /gone/);
    await eventually('git ended', () => answer.ended);
    await eventually('the bytes are free', () => cache.figures().growingBytes === 0);
    assert.equal(await onDisk(), 0);
  });

  test('counts an answer that left the cache until its last reader has read it', async (context) => {
    const { cache } = await newCache(context);
    // More than what a reader has in memory.
    await bytesOf(follow(cache, 'key', 'ada', answerOf(32)));
    const reading = await beginReading(follow(cache, 'key', 'ada', answerOf(0)));
    cache.drop('key');
    await cache.freeDisk();
    assert.equal(cache.figures().keptBytes, 32 * CHUNK_BYTES);
    assert.equal((await reading.rest()).length, 32 * CHUNK_BYTES);
    assert.equal(cache.figures().keptBytes, 0);
  });

  test('goes by half to one account at most', async () => {
    const budget = createAnswerDiskBudget({ bytesMax: 100, removeOne: async () => false });
    const [first, second, other] = [budget.open('ada'), budget.open('ada'), budget.open('bob')];
    assert.equal(await first.holds(30), true);
    assert.equal(await second.holds(21), false);
    assert.equal(await second.holds(20), true);
    assert.equal(await other.holds(50), true);
    assert.equal(await other.holds(51), false);
    first.keep(25);
    assert.deepEqual(budget.reserved(), { keptBytes: 25, growingBytes: 70 });
    assert.equal(await second.holds(25), true, 'what is kept is no share of the account');
    for (const reservation of [first, second, other, other]) reservation.release();
    assert.deepEqual(budget.reserved(), { keptBytes: 0, growingBytes: 0 });
  });
});

describe('An answer for one reader', () => {
  const spool = (cache: AnswerCache, { make }: Made, signal = NEVER) => cache.spool({ account: 'ada', signal, make });

  test('is made to its end although the reader waits, and is off the disk when it was read', async (context) => {
    const { cache, onDisk } = await newCache(context, 4 * BOUND_BYTES);
    const answer = answerOf(100);
    const reading = await beginReading(spool(cache, answer));
    await eventually('git ended', () => answer.ended);
    assert.equal(answer.paced, 0);
    assert.ok(cache.figures().growingBytes > 0);
    assert.equal(await onDisk(), 0, 'its file has no name');
    assert.ok((await reading.rest()).equals(contentOf(100)));
    assert.equal(cache.figures().growingBytes, 0);
  });

  test('goes at the pace of its reader where there is no room, from a slot for slow readers', async (context) => {
    const { cache } = await newCache(context);
    const answer = answerOf(200);
    const reading = await beginReading(spool(cache, answer));
    await eventually('git waits', () => answer.paced > 0);
    const { chunks } = answer;
    await sleep(20);
    assert.equal(answer.chunks, chunks);
    assert.equal(answer.ended, false);
    assert.ok((await reading.rest()).equals(contentOf(200)));
  });

  test('ends with its reader, and with the failure of git', async (context) => {
    const { cache } = await newCache(context);
    const answer = answerOf(10_000);
    const generator = spool(cache, answer);
    await generator.next();
    await generator.return(undefined);
    assert.equal(answer.ended, true);
    const gone = new AbortController();
    const second = await beginReading(spool(cache, answerOf(10_000), gone.signal));
    gone.abort(new Error('gone'));
    await assert.rejects(second.rest(), /gone/);
    const failing = async function* (): AsyncGenerator<Uint8Array> {
      yield Buffer.alloc(1);
      throw new Error('git died');
    };
    await assert.rejects(bytesOf(cache.spool({ account: 'ada', signal: NEVER, make: failing })), /git died/);
    assert.equal(cache.figures().growingBytes, 0);
  });
});

async function bytesOf(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  return Buffer.concat(await Array.fromAsync(chunks));
}
