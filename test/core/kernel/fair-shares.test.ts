/** How work of different weights shares what is bounded. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createFairShares, type FairShares } from '../../../core/kernel/fair-shares.ts';

/** Notes in `order` when each of these gets its share; the returned releases end them. */
function asking(shares: FairShares) {
  const order: string[] = [];
  const releases = new Map<string, () => void>();
  const ask = async (name: string, key: string, weight: number, signal?: AbortSignal): Promise<void> => {
    const release = await shares.ofWeight(weight).acquire(key, signal);
    order.push(name);
    releases.set(name, release);
  };
  const release = async (name: string): Promise<void> => {
    releases.get(name)?.();
    await settled();
  };
  return { order, ask, release };
}

const settled = () => new Promise(setImmediate);

describe('shares', () => {
  test('give out no more than the total, and the rest as soon as it is free', async () => {
    const { order, ask, release } = asking(createFairShares({ total: 10, perKey: 10 }));
    void ask('six', 'a', 6);
    void ask('four', 'b', 4);
    void ask('one', 'c', 1);
    await settled();
    assert.deepEqual(order, ['six', 'four']);
    await release('four');
    await release('four');
    assert.deepEqual(order, ['six', 'four', 'one']);
    void ask('another four', 'd', 4);
    await settled();
    assert.equal(order.length, 3, 'a share released twice is free once');
  });

  test('keep a part from each key, and let other keys pass one that has all of its own', async () => {
    const { order, ask, release } = asking(createFairShares({ total: 10, perKey: 5 }));
    for (const name of ['first', 'second', 'third']) void ask(name, 'greedy', 2);
    void ask('modest', 'other', 6);
    await settled();
    assert.deepEqual(order, ['first', 'second', 'modest']);
    await release('first');
    assert.deepEqual(order, ['first', 'second', 'modest', 'third']);
  });

  test('give a key one piece that is heavier than its part, and heavier than all', async () => {
    const { order, ask, release } = asking(createFairShares({ total: 10, perKey: 5 }));
    void ask('heavy', 'a', 99);
    void ask('light', 'a', 1);
    void ask('of another', 'b', 1);
    await settled();
    assert.deepEqual(order, ['heavy']);
    await release('heavy');
    assert.deepEqual(order, ['heavy', 'light', 'of another']);
  });

  test('let light work not pass heavy work for ever', async () => {
    const { order, ask, release } = asking(createFairShares({ total: 10, perKey: 10 }));
    void ask('light', 'a', 3);
    void ask('heavy', 'b', 8);
    void ask('later', 'c', 1);
    await settled();
    assert.deepEqual(order, ['light']);
    await release('light');
    assert.deepEqual(order, ['light', 'heavy', 'later']);
  });

  test('serve waiting keys in rotation, however many requests one of them has', async () => {
    const { order, ask, release } = asking(createFairShares({ total: 1, perKey: 1 }));
    for (const name of ['g1', 'g2', 'g3']) void ask(name, 'greedy', 1);
    void ask('m1', 'modest', 1);
    await settled();
    for (const name of ['g1', 'g2', 'm1']) await release(name);
    assert.deepEqual(order, ['g1', 'g2', 'm1', 'g3']);
  });

  test('forget a waiter that gave up, and give its turn to those behind it', async () => {
    const { order, ask } = asking(createFairShares({ total: 10, perKey: 10 }));
    void ask('light', 'a', 3);
    const client = new AbortController();
    const gone = ask('heavy', 'b', 8, client.signal);
    void ask('later', 'c', 1);
    client.abort(new Error('gone'));
    await assert.rejects(gone, /gone/);
    await settled();
    assert.deepEqual(order, ['light', 'later']);
    await assert.rejects(ask('late', 'd', 1, client.signal), /gone/);
  });

  test('take nothing without waiting while somebody waits', async () => {
    const shares = createFairShares({ total: 10, perKey: 10 });
    const release = shares.ofWeight(3).take('a');
    assert.ok(release !== null);
    void shares.ofWeight(8).acquire('b');
    assert.equal(shares.ofWeight(1).take('c'), null);
    release();
    assert.equal(shares.ofWeight(3).take('c'), null);
    assert.ok(shares.ofWeight(2).take('c') !== null);
  });
});
