/** Whole answers on disk: made once, followed by many, never kept when they fail. */
import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { type AnswerCache, createAnswerCache } from '../../../../adapters/git/answer-cache.ts';
import { tempDir } from '../../../support/temp-dir.ts';

const NEVER = new AbortController().signal;

async function newCache(context: TestContext, bytesMax = 1_000): Promise<{ cache: AnswerCache; directory: string }> {
  const directory = path.join(await tempDir(context), 'answers');
  const onFault = (error: unknown): void => assert.fail(String(error));
  return { cache: await createAnswerCache({ directory, bytesMax, onFault }), directory };
}

async function text(chunks: AsyncIterable<Uint8Array>): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of chunks) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

/** An answer whose parts come when the test says so. */
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

describe('Kept answers', () => {
  test('are made once and then given as they are', async (context) => {
    const { cache } = await newCache(context);
    let made = 0;
    const make = async function* () {
      made += 1;
      yield Buffer.from('answer');
    };
    assert.equal(await text(cache.follow('key', NEVER, make)), 'answer');
    assert.equal(await text(cache.follow('key', NEVER, make)), 'answer');
    assert.equal(made, 1);
    assert.equal(await text(cache.follow('other', NEVER, make)), 'answer');
    assert.equal(made, 2);
  });

  test('are followed by many while git still makes them', async (context) => {
    const { cache } = await newCache(context);
    const answer = slowAnswer();
    const first = text(cache.follow('key', NEVER, answer.make));
    await answer.step();
    const second = text(cache.follow('key', NEVER, answer.make));
    await answer.step();
    await answer.step();
    assert.deepEqual(await Promise.all([first, second]), ['one two three', 'one two three']);
    assert.equal(answer.made(), 1);
  });

  test('outlive the client that asked first, as long as another follows', async (context) => {
    const { cache } = await newCache(context);
    const answer = slowAnswer();
    const gone = new AbortController();
    const first = text(cache.follow('key', gone.signal, answer.make));
    await answer.step();
    const second = text(cache.follow('key', NEVER, answer.make));
    await sleep(10);
    gone.abort(new Error('gone'));
    await assert.rejects(first, /gone/);
    await answer.step();
    await answer.step();
    assert.equal(await second, 'one two three');
  });

  test('are stopped when nobody follows, and leave nothing behind', async (context) => {
    const { cache, directory } = await newCache(context);
    const answer = slowAnswer();
    const gone = new AbortController();
    const only = text(cache.follow('key', gone.signal, answer.make));
    await answer.step();
    gone.abort(new Error('gone'));
    await assert.rejects(only, /gone/);
    while (!answer.ended()) await sleep(1);
    while ((await readdir(directory)).length > 0) await sleep(1);
  });

  test('that fail break off whoever follows and are not kept', async (context) => {
    const { cache, directory } = await newCache(context);
    let made = 0;
    const make = async function* () {
      made += 1;
      yield Buffer.from('half');
      if (made === 1) throw new Error('git died');
    };
    await assert.rejects(text(cache.follow('key', NEVER, make)), /git died/);
    assert.equal(await text(cache.follow('key', NEVER, make)), 'half');
    assert.equal((await readdir(directory)).length, 1);
  });

  test('go when others need the room, and too large ones at once', async (context) => {
    const { cache, directory } = await newCache(context, 10);
    const sized = (bytes: number) =>
      async function* () {
        yield Buffer.alloc(bytes, 'x');
      };
    for (const key of ['a', 'b', 'c']) await text(cache.follow(key, NEVER, sized(4)));
    while ((await readdir(directory)).length !== 2) await sleep(1);
    assert.equal((await text(cache.follow('large', NEVER, sized(11)))).length, 11);
    while ((await readdir(directory)).length !== 2) await sleep(1);
  });

  test('are made anew when somebody deleted the folder', async (context) => {
    const { cache, directory } = await newCache(context);
    const make = async function* () {
      yield Buffer.from('answer');
    };
    await text(cache.follow('key', NEVER, make));
    await rm(directory, { recursive: true });
    assert.equal(await text(cache.follow('key', NEVER, make)), 'answer');
  });
});
