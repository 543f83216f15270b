/** The limit of concurrent work, and its order. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createConcurrencyLimit } from '../../../core/kernel/concurrency-limit.ts';

describe('A concurrency limit', () => {
  test('runs no more work at the same time than it allows, in the order of the calls', async () => {
    const limited = createConcurrencyLimit(2);
    let running = 0;
    let most = 0;
    const started: number[] = [];
    const work = (n: number) => async () => {
      started.push(n);
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
      return n;
    };
    const results = await Promise.all(Array.from({ length: 20 }, (_, n) => limited(work(n))));
    assert.equal(most, 2);
    assert.deepEqual(started, results);
    assert.deepEqual(
      results,
      Array.from({ length: 20 }, (_, n) => n),
    );
  });

  test('keeps the order and the limit when calls arrive just as work ends', async () => {
    const limited = createConcurrencyLimit(2);
    let running = 0;
    let most = 0;
    const started: string[] = [];
    const work = (name: string) => async () => {
      started.push(name);
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    const chains = ['a', 'b', 'c', 'd'].map(async (name) => {
      await limited(work(name));
      await limited(work(`${name} again`));
    });
    await Promise.all(chains);
    assert.equal(most, 2);
    assert.deepEqual(started.slice(0, 4), ['a', 'b', 'c', 'd']);
  });

  test('starts the next work after work that fails', async () => {
    const limited = createConcurrencyLimit(1);
    const failing = Array.from({ length: 3 }, () =>
      limited(async () => {
        throw new Error('broken');
      }),
    );
    for (const failed of await Promise.allSettled(failing)) assert.equal(failed.status, 'rejected');
    assert.equal(await limited(async () => 'done'), 'done');
  });
});
