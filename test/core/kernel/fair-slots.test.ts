/** How keys share slots, and shares of different weights. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createFairShares, createFairSlots, type FairShares } from '../../../core/kernel/fair-slots.ts';

describe('slots', () => {
  test('let no more tasks run than there are slots, and the next as soon as one is released', async () => {
    const slots = createFairSlots({ slots: 2, slotsPerKey: 2 });
    const [first] = [await slots.acquire('a'), await slots.acquire('b')];
    let third = false;
    const waiting = slots.acquire('c').then(() => {
      third = true;
    });
    await new Promise(setImmediate);
    assert.equal(third, false);
    first?.();
    first?.();
    await waiting;
    let fourth = false;
    void slots.acquire('d').then(() => {
      fourth = true;
    });
    await new Promise(setImmediate);
    assert.equal(fourth, false, 'a slot released twice is one free slot');
  });

  test('serve waiting keys in rotation, however many requests one of them has', async () => {
    const slots = createFairSlots({ slots: 1, slotsPerKey: 1 });
    const order: string[] = [];
    const release = await slots.acquire('busy');
    const take = async (key: string) => {
      const done = await slots.acquire(key);
      order.push(key);
      done();
    };
    const all = [...Array.from({ length: 5 }, () => take('greedy')), take('modest'), take('third')];
    release();
    await Promise.all(all);
    assert.deepEqual(order, ['greedy', 'modest', 'third', 'greedy', 'greedy', 'greedy', 'greedy']);
  });

  test('let other keys pass a key that has all its slots', async () => {
    const slots = createFairSlots({ slots: 3, slotsPerKey: 1 });
    const release = await slots.acquire('a');
    let second = false;
    const waiting = slots.acquire('a').then(() => {
      second = true;
    });
    await slots.acquire('b');
    assert.equal(second, false);
    release();
    await waiting;
  });

  test('forget a waiter that gave up', async () => {
    const slots = createFairSlots({ slots: 1, slotsPerKey: 1 });
    const release = await slots.acquire('a');
    const abort = new AbortController();
    const gone = slots.acquire('b', abort.signal);
    const next = slots.acquire('b');
    abort.abort(new Error('gone'));
    await assert.rejects(gone, /gone/);
    release();
    (await next)();
    await assert.rejects(slots.acquire('a', abort.signal), /gone/);
    (await slots.acquire('a'))();
  });

  test('keep the last slots for keys that have few, also from keys that wait', async () => {
    const slots = createFairSlots({ slots: 6, slotsPerKey: 5, kept: { slots: 3, slotsPerKey: 2 } });
    const greedy = Array.from({ length: 3 }, () => slots.take('greedy'));
    assert.ok(greedy.every((release) => release !== null));
    assert.equal(slots.take('greedy'), null, 'the others are kept');
    let fourth = false;
    const waiting = slots.acquire('greedy').then((release) => {
      fourth = true;
      return release;
    });
    const [first, second] = [slots.take('modest'), slots.take('modest')];
    assert.ok(first !== null && second !== null, 'others get them immediately');
    assert.equal(slots.take('modest'), null, 'few of them each');
    const last = slots.take('third');
    assert.notEqual(last, null);
    first();
    await new Promise(setImmediate);
    assert.equal(fourth, false, 'a kept slot that becomes free stays kept');
    for (const release of [second, last]) release?.();
    greedy[0]?.();
    (await waiting)();
  });

  test('go to each waiter that one release lets in: to a key that now has few, and to the one in front of it', async () => {
    const slots = createFairSlots({ slots: 6, slotsPerKey: 5, kept: { slots: 2, slotsPerKey: 2 } });
    const [release] = [slots.take('first'), slots.take('first'), slots.take('second'), slots.take('second')];
    const served: string[] = [];
    for (const key of ['second', 'first']) void slots.acquire(key).then(() => served.push(key));
    await settled();
    assert.deepEqual(served, [], 'the last two are kept');
    release?.();
    await settled();
    assert.deepEqual(served, ['second', 'first']);
  });

  test('give a slot immediately or not at all to whoever does not wait', async () => {
    const slots = createFairSlots({ slots: 2, slotsPerKey: 1 });
    const release = slots.take('a');
    assert.equal(slots.take('a'), null, 'all that the key may have');
    (await slots.acquire('b'))();
    const other = slots.take('b');
    assert.equal(slots.take('c'), null, 'all that there are');
    release?.();
    release?.();
    assert.notEqual(slots.take('c'), null);
    assert.equal(slots.take('a'), null, 'a slot is freed once');
    assert.notEqual(other, null);
  });
});

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

  test('do not let light work always pass heavy work', async () => {
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
