/** Turns: so many at once, in order. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createTurns } from '../../../core/kernel/concurrency-limit.ts';

describe('Turns', () => {
  test('are taken by so many at once and no more, first come, first served', async () => {
    const turns = createTurns(2);
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
    const results = await Promise.all(Array.from({ length: 20 }, (_, n) => turns(work(n))));
    assert.equal(most, 2);
    assert.deepEqual(started, results);
    assert.deepEqual(
      results,
      Array.from({ length: 20 }, (_, n) => n),
    );
  });

  test('are not overtaken, nor exceeded, by those who come as one ends', async () => {
    const turns = createTurns(2);
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
      await turns(work(name));
      await turns(work(`${name} again`));
    });
    await Promise.all(chains);
    assert.equal(most, 2);
    assert.deepEqual(started.slice(0, 4), ['a', 'b', 'c', 'd']);
  });

  test('are given on by work that fails', async () => {
    const turns = createTurns(1);
    const failing = Array.from({ length: 3 }, () =>
      turns(async () => {
        throw new Error('broken');
      }),
    );
    for (const failed of await Promise.allSettled(failing)) assert.equal(failed.status, 'rejected');
    assert.equal(await turns(async () => 'done'), 'done');
  });
});
