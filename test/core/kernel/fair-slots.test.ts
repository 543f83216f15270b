/** How processes share slots. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createFairSlots } from '../../../core/kernel/fair-slots.ts';

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
    assert.ok(first !== null && second !== null, 'others get them at once');
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

  test('give a slot at once or not at all to whoever does not wait', async () => {
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
