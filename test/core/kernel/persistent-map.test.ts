/** A map that is made of parts, of which the runs of refs take the rest (test/core/repository/ref-runs.test.ts). */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { PersistentMap } from '../../../core/kernel/persistent-map.ts';

describe('A persistent map made in parts', () => {
  const weigh = (key: string): number => key.length;

  test('is that of all its entries', () => {
    const parts = PersistentMap.inParts<string, number>(weigh);
    for (const [number, key] of ['a', 'bcd', 'ef'].entries()) parts.add(key, number + 1);
    const map = parts.map();
    const same = PersistentMap.from(map.entries(), weigh);
    assert.deepEqual([map.size, map.weight, map.get('bcd')], [3, 6, 2]);
    assert.deepEqual([same.size, same.weight], [3, 6]);
    assert.deepEqual(map.with([['a', undefined]]).weight, 5);
  });

  test('takes no entry twice, and none after it is made', () => {
    const parts = PersistentMap.inParts<string, number>(weigh);
    parts.add('a', 1);
    parts.map();
    assert.throws(() => parts.add('b', 2), TypeError);
    const twice = PersistentMap.inParts<string, number>(weigh);
    for (const value of [1, 2]) twice.add('a', value);
    assert.throws(() => twice.map(), TypeError);
  });
});
