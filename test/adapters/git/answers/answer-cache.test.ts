/** Cached answers on disk: made once, followed by many requests, never kept when they fail. */
import assert from 'node:assert/strict';
import { closeSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, type TestContext, test } from 'vitest';
import {
  type AnswerCache,
  createAnswerCache,
  type WantedAnswer,
} from '../../../../adapters/git/answers/answer-cache.ts';
import { type AnswerMemory, createAnswerMemory } from '../../../../adapters/git/answers/answer-memory.ts';
import { garbageCollection } from '../../../support/garbage-collection.ts';
import { NO_PROC } from '../../../support/git-below.ts';
import { eventually } from '../../../support/processes.ts';
import { skippedFor } from '../../../support/skipped.ts';
import { mountSmallDisk } from '../../../support/small-disk.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const NEEDS_PROC = skippedFor(NO_PROC);
const NEVER = new AbortController().signal;

async function newCache(
  context: TestContext,
  bytesMax = 1_000,
  answersMax?: number,
  memory?: AnswerMemory,
): Promise<{ cache: AnswerCache; directory: string }> {
  const directory = path.join(await tempDir(context), 'answers');
  const onFault = (error: unknown): void => assert.fail(String(error));
  return {
    cache: await createAnswerCache({
      directory,
      bytesMax,
      ...(answersMax === undefined ? {} : { answersMax }),
      ...(memory === undefined ? {} : { memory }),
      onFault,
    }),
    directory,
  };
}

function follow(
  cache: AnswerCache,
  key: string,
  signal: AbortSignal,
  make: WantedAnswer['make'],
): AsyncGenerator<Uint8Array> {
  return cache.follow({ key, account: 'ada', signal, make });
}

async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

/** An answer that yields its next part when the test calls `step`. */
function slowAnswer() {
  const steps: (() => void)[] = [];
  let made = 0;
  let ended = false;
  const make = async function* (signal: AbortSignal): AsyncGenerator<Uint8Array> {
    made += 1;
    try {
      for (const part of ['one ', 'two ', 'three']) {
        signal.throwIfAborted();
        await new Promise<void>((resolve, reject) => {
          steps.push(resolve);
          signal.addEventListener('abort', () => reject(new Error('stopped')), { once: true });
        });
        yield Buffer.from(part);
      }
    } finally {
      ended = true;
    }
  };
  const step = async (): Promise<void> => {
    while (steps.length === 0) await sleep(1);
    steps.shift()?.();
  };
  return { make, step, made: () => made, ended: () => ended };
}

/** Closes the files that this process has open for writing below a directory, so that their owner's close fails. */
function closeWrittenBelow(directory: string): void {
  for (const name of readdirSync('/proc/self/fd')) {
    const fd = Number(name);
    try {
      const isWritten = /^flags:.*[12]$/m.test(readFileSync(`/proc/self/fdinfo/${name}`, 'latin1'));
      if (isWritten && readlinkSync(`/proc/self/fd/${name}`).startsWith(directory)) closeSync(fd);
    } catch {
      // The descriptor that lists the folder is closed by now.
    }
  }
}

describe('The cache of answers', () => {
  test('fails only the followers of an answer whose file cannot be closed', NEEDS_PROC, async (context) => {
    const { cache, directory } = await newCache(context);
    const rejections: unknown[] = [];
    const note = (reason: unknown) => rejections.push(reason);
    process.on('unhandledRejection', note);
    context.onTestFinished(() => void process.off('unhandledRejection', note));
    const make = async function* () {
      yield Buffer.from('answer');
    };
    const makeAndBreak = async function* () {
      yield* make();
      // Long enough for the follower to open the file, too.
      await sleep(20);
      closeWrittenBelow(directory);
    };
    await assert.rejects(text(follow(cache, 'key', NEVER, makeAndBreak)), /EBADF/);
    await sleep(20);
    assert.deepEqual(rejections, []);
    assert.deepEqual(await readdir(directory), [], 'a failed answer is not kept');
    assert.equal(await text(follow(cache, 'key', NEVER, make)), 'answer');
  });

  test('keeps none of the dropped answers, though one is still being made', async (context) => {
    const { cache, directory } = await newCache(context);
    const make = async function* () {
      yield Buffer.from('answer');
    };
    await text(follow(cache, 'one clone', NEVER, make));
    await text(follow(cache, 'two clone', NEVER, make));
    const slow = slowAnswer();
    const followed = text(follow(cache, 'one fetch', NEVER, slow.make));
    await slow.step();
    cache.drop('one ');
    await slow.step();
    await slow.step();
    assert.equal(await followed, 'one two three', 'who follows it reads it to its end');
    while ((await readdir(directory)).length > 1) await sleep(1);
    let made = 0;
    const makeAgain = async function* () {
      made += 1;
      yield* make();
    };
    for (const key of ['one clone', 'one fetch', 'two clone']) await text(follow(cache, key, NEVER, makeAgain));
    assert.equal(made, 2);
  });

  test('makes an answer once and then serves its bytes', async (context) => {
    const { cache } = await newCache(context);
    let made = 0;
    const make = async function* () {
      made += 1;
      yield Buffer.from('answer');
    };
    assert.equal(await text(follow(cache, 'key', NEVER, make)), 'answer');
    assert.equal(await text(follow(cache, 'key', NEVER, make)), 'answer');
    assert.equal(made, 1);
    assert.equal(await text(follow(cache, 'other', NEVER, make)), 'answer');
    assert.equal(made, 2);
  });

  test('lets many requests follow an answer that git is still making', async (context) => {
    const { cache } = await newCache(context);
    const answer = slowAnswer();
    const first = text(follow(cache, 'key', NEVER, answer.make));
    await answer.step();
    const second = text(follow(cache, 'key', NEVER, answer.make));
    await answer.step();
    await answer.step();
    assert.deepEqual(await Promise.all([first, second]), ['one two three', 'one two three']);
    assert.equal(answer.made(), 1);
  });

  test('makes one answer for a herd that asks at the same moment, and for one that finds the folder deleted', async (context) => {
    const { cache, directory } = await newCache(context);
    const answer = slowAnswer();
    const herd = Array.from({ length: 24 }, () => text(follow(cache, 'key', NEVER, answer.make)));
    for (let part = 0; part < 3; part += 1) await answer.step();
    assert.deepEqual(new Set(await Promise.all(herd)), new Set(['one two three']));
    assert.equal(answer.made(), 1);

    await rm(directory, { recursive: true });
    const again = slowAnswer();
    const second = Array.from({ length: 24 }, () => text(follow(cache, 'key', NEVER, again.make)));
    for (let part = 0; part < 3; part += 1) await again.step();
    assert.deepEqual(new Set(await Promise.all(second)), new Set(['one two three']));
    assert.equal(again.made(), 1);
  });

  test('goes on with an answer after its first client left, as long as another one follows', async (context) => {
    const { cache } = await newCache(context);
    const answer = slowAnswer();
    const gone = new AbortController();
    const first = text(follow(cache, 'key', gone.signal, answer.make));
    await answer.step();
    const second = text(follow(cache, 'key', NEVER, answer.make));
    await sleep(10);
    gone.abort(new Error('gone'));
    await assert.rejects(first, /gone/);
    await answer.step();
    await answer.step();
    assert.equal(await second, 'one two three');
  });

  test('stops making an answer that nobody follows, and leaves no file behind', async (context) => {
    const { cache, directory } = await newCache(context);
    const answer = slowAnswer();
    const gone = new AbortController();
    const only = text(follow(cache, 'key', gone.signal, answer.make));
    await answer.step();
    gone.abort(new Error('gone'));
    await assert.rejects(only, /gone/);
    while (!answer.ended()) await sleep(1);
    while ((await readdir(directory)).length > 0) await sleep(1);
  });

  test('makes an answer again for a request that arrives just after its last follower left', async (context) => {
    const { cache } = await newCache(context);
    const { make, made } = slowAnswer();
    const client = new AbortController();
    const first = text(follow(cache, 'key', client.signal, make));
    while (made() === 0) await sleep(1);
    client.abort(new Error('gone'));
    await assert.rejects(first, /gone/);
    const whole = async function* () {
      yield Buffer.from('answer');
    };
    assert.equal(await text(follow(cache, 'key', NEVER, whole)), 'answer');
  });

  test('fails every follower of an answer that fails, and does not keep it', async (context) => {
    const { cache, directory } = await newCache(context);
    let made = 0;
    const make = async function* () {
      made += 1;
      yield Buffer.from('half');
      if (made === 1) throw new Error('git died');
    };
    await assert.rejects(text(follow(cache, 'key', NEVER, make)), /git died/);
    assert.equal(await text(follow(cache, 'key', NEVER, make)), 'half');
    assert.equal((await readdir(directory)).length, 1);
  });

  // The attack: thousands of small fetches, each of other haves. Each kept answer held the process that had made it,
  // with its sockets and their buffers.
  test('lets go of the process that made an answer', async (context) => {
    const { cache } = await newCache(context);
    const processes: WeakRef<object>[] = [];
    for (const key of ['a', 'b', 'c']) {
      const make: WantedAnswer['make'] = async function* (_, pacing) {
        const running = { pace: async () => undefined };
        processes.push(new WeakRef(running));
        pacing.begun(running);
        yield Buffer.from('answer');
      };
      await text(follow(cache, key, NEVER, make));
    }
    const collect = garbageCollection();
    await eventually('the processes are let go', () => {
      collect();
      return processes.every((process) => process.deref() === undefined);
    });
    assert.deepEqual(cache.keys(), ['a', 'b', 'c']);
  });

  test('keeps a bounded number of answers, however small they are: those that were used last', async (context) => {
    const { cache, directory } = await newCache(context, 1_000, 3);
    const make = async function* () {
      yield Buffer.from('x');
    };
    for (const key of ['a', 'b', 'c', 'a', 'd', 'e']) await text(follow(cache, key, NEVER, make));
    assert.deepEqual(cache.keys(), ['a', 'd', 'e']);
    while ((await readdir(directory)).length !== 3) await sleep(1);
  });

  test('evicts answers when others need the room, and does not keep one that is too large', async (context) => {
    const { cache, directory } = await newCache(context, 10);
    const sized = (bytes: number) =>
      async function* () {
        yield Buffer.alloc(bytes, 'x');
      };
    for (const key of ['a', 'b', 'c']) await text(follow(cache, key, NEVER, sized(4)));
    while ((await readdir(directory)).length !== 2) await sleep(1);
    assert.equal((await text(follow(cache, 'large', NEVER, sized(11)))).length, 11);
    while ((await readdir(directory)).length !== 2) await sleep(1);
  });

  test('on a full disk lets kept answers go first, then passes an answer on without keeping it', async (context) => {
    const disk = mountSmallDisk(1024 * 1024);
    if ('skip' in disk) return context.skip(disk.skip);
    context.onTestFinished(() => disk.remove());
    const directory = path.join(disk.path, 'answers');
    const onFault = (error: unknown): void => assert.fail(String(error));
    const cache = await createAnswerCache({ directory, bytesMax: 2 ** 30, onFault });
    const parts = (count: number) =>
      async function* () {
        for (let part = 0; part < count; part += 1) yield Buffer.alloc(100_000, part % 256);
      };
    await text(follow(cache, 'first', NEVER, parts(7)));
    const expected = await text(parts(8)());
    assert.equal(await text(follow(cache, 'second', NEVER, parts(8))), expected);
    assert.equal((await readdir(directory)).length, 1, 'the first made room for the second');

    let made = 0;
    let stopped = false;
    const large = async function* () {
      made += 1;
      try {
        yield* parts(50)();
      } finally {
        stopped = true;
      }
    };
    const leaving = new AbortController();
    const followers = Array.from({ length: 3 }, () => text(follow(cache, 'large', NEVER, large)));
    const silent = follow(cache, 'large', leaving.signal, large);
    await silent.next();
    await sleep(100);
    assert.equal(stopped, false, 'git goes at the pace of the slowest');
    await silent.return(undefined);
    const whole = await text(parts(50)());
    for (const follower of followers) assert.ok((await follower) === whole);
    assert.equal(made, 1);
    while ((await readdir(directory)).length > 0) await sleep(1);
  });

  test('makes an answer again after its folder was deleted', async (context) => {
    const { cache, directory } = await newCache(context);
    const make = async function* () {
      yield Buffer.from('answer');
    };
    await text(follow(cache, 'key', NEVER, make));
    await rm(directory, { recursive: true });
    assert.equal(await text(follow(cache, 'key', NEVER, make)), 'answer');
  });

  describe('in memory', () => {
    const sized = (bytes: number, letter = 'x') =>
      async function* () {
        yield Buffer.alloc(bytes, letter);
      };
    const textOf = (cache: AnswerCache, key: string): string | null => {
      const held = cache.held(key);
      held?.release();
      return held?.bytes.toString() ?? null;
    };

    test('has an answer from its second request on, and reads no file for it any more', async (context) => {
      const { cache, directory } = await newCache(context);
      assert.equal(await text(follow(cache, 'key', NEVER, sized(3))), 'xxx');
      assert.equal(cache.held('key'), null, 'most answers are read once');
      assert.equal(await text(follow(cache, 'key', NEVER, sized(3, 'never made'))), 'xxx');
      await rm(directory, { recursive: true });
      assert.equal(textOf(cache, 'key'), 'xxx');
      const { keptBytes, memoryBytes } = cache.figures();
      assert.deepEqual({ keptBytes, memoryBytes }, { keptBytes: 3, memoryBytes: 3 });
    });

    test('has none of a size beyond the limit: it is read from its file', async (context) => {
      const memory = createAnswerMemory({ bytesMax: 10, answerBytesMax: 2 });
      const { cache } = await newCache(context, 1_000, undefined, memory);
      for (let request = 0; request < 3; request += 1) {
        assert.equal(await text(follow(cache, 'key', NEVER, sized(3))), 'xxx');
      }
      assert.equal(cache.held('key'), null);
      assert.equal(cache.figures().memoryBytes, 0);
    });

    // A purge and an erasure drop the repository: nobody may find what it held.
    test('has none that was dropped, though somebody reads it', async (context) => {
      const { cache } = await newCache(context);
      for (const key of ['one clone', 'one clone', 'two clone', 'two clone']) {
        await text(follow(cache, key, NEVER, sized(3)));
      }
      const reading = cache.held('one clone');
      cache.drop('one ');
      assert.equal(cache.held('one clone'), null);
      assert.equal(reading?.bytes.toString(), 'xxx', 'who reads it gets all of it');
      assert.equal(cache.figures().memoryBytes, 6);
      reading.release();
      assert.equal(cache.figures().memoryBytes, 3);
      assert.equal(textOf(cache, 'two clone'), 'xxx');
    });

    test('has none that is dropped while it is read in', async (context) => {
      const { cache } = await newCache(context);
      await text(follow(cache, 'one clone', NEVER, sized(3)));
      const second = text(follow(cache, 'one clone', NEVER, sized(3)));
      while (cache.figures().memoryBytes === 0) await new Promise(setImmediate);
      cache.drop('one ');
      assert.equal(await second, 'xxx');
      assert.equal(cache.held('one clone'), null);
      assert.equal(cache.figures().memoryBytes, 0);
    });

    test('has only answers that are kept on disk, and keeps those there that it gives', async (context) => {
      const { cache } = await newCache(context, 1_000, 2);
      for (const key of ['a', 'a', 'b', 'b']) await text(follow(cache, key, NEVER, sized(3)));
      assert.equal(textOf(cache, 'a'), 'xxx');
      await text(follow(cache, 'c', NEVER, sized(3)));
      assert.deepEqual(cache.keys(), ['a', 'c']);
      assert.equal(cache.held('b'), null);
      await cache.freeDisk();
      assert.equal(cache.held('a'), null);
      assert.equal(cache.figures().memoryBytes, 0);
    });

    test('counts nothing for readers that left half way', async (context) => {
      const { cache } = await newCache(context, 2 ** 30);
      const bytes = 1024 * 1024;
      await text(follow(cache, 'key', NEVER, sized(bytes)));
      const reader = follow(cache, 'key', NEVER, sized(bytes));
      await reader.next();
      cache.drop('key');
      assert.equal(cache.figures().memoryBytes, bytes);
      await reader.return(undefined);
      assert.equal(cache.figures().memoryBytes, 0);
    });
  });
});
