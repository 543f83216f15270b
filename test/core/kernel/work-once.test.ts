/** Work that several requests want at the same time, and one does for all. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { workOnce } from '../../../core/kernel/work-once.ts';

/** Work that ends when the test settles it. */
function heldWork() {
  const begun: PromiseWithResolvers<string>[] = [];
  const work = (): Promise<string> => {
    const held = Promise.withResolvers<string>();
    begun.push(held);
    return held.promise;
  };
  return { begun, work };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

describe('Work that several want', () => {
  test('is done once for all who want it at the same time, and again for who comes later', async () => {
    const { begun, work } = heldWork();
    const underWay = new Map<string, Promise<string>>();
    const both = [workOnce(underWay, 'a', work), workOnce(underWay, 'a', work)];
    const other = workOnce(underWay, 'b', work);
    await settle();
    assert.equal(begun.length, 2);
    begun[0]?.resolve('first');
    begun[1]?.resolve('other');
    assert.deepEqual([await Promise.all(both), await other], [['first', 'first'], 'other']);
    assert.equal(underWay.size, 0);
    const later = workOnce(underWay, 'a', work);
    begun[2]?.resolve('second');
    assert.equal(await later, 'second');
  });

  test('that fails is done by one of those who waited, for the others too', async () => {
    const { begun, work } = heldWork();
    const underWay = new Map<string, Promise<string>>();
    const first = workOnce(underWay, 'a', work);
    const waiting = [workOnce(underWay, 'a', work), workOnce(underWay, 'a', work)];
    begun[0]?.reject(new Error('The client left'));
    await assert.rejects(first, /The client left/);
    await settle();
    assert.equal(begun.length, 2);
    begun[1]?.resolve('second');
    assert.deepEqual(await Promise.all(waiting), ['second', 'second']);
    assert.equal(underWay.size, 0);
  });

  test('is not done for who left while another did it', async () => {
    const { begun, work } = heldWork();
    const underWay = new Map<string, Promise<string>>();
    const leaves = new AbortController();
    const first = workOnce(underWay, 'a', work);
    const left = workOnce(underWay, 'a', work, leaves.signal);
    leaves.abort(new Error('The client left'));
    begun[0]?.reject(new Error('lost'));
    await assert.rejects(first, /lost/);
    await assert.rejects(left, /The client left/);
    assert.equal(begun.length, 1);
  });
});
