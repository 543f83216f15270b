/** The figures of caches: sizes, bounds and looks, by name. */
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { LRUCache } from 'lru-cache';
import { describe, test } from 'vitest';
import { countedCache, showCache, shownCaches } from '../../../core/kernel/shown-caches.ts';
import { eventually } from '../../support/processes.ts';

describe('A counted cache', () => {
  test('shows what it takes of its bound, and counts what was found and what was not', () => {
    const cache = countedCache(
      'test-texts',
      'memory',
      new LRUCache<string, string>({ maxSize: 100, sizeCalculation: (text) => text.length }),
    );
    cache.set('one', 'text');
    assert.equal(cache.get('one'), 'text');
    assert.equal(cache.get('other'), undefined);
    assert.equal(cache.get('one'), 'text');
    assert.equal(cache.has('one'), true);
    assert.deepEqual(shownCaches().get('test-texts'), { unit: 'memory', taken: 4, max: 100, hits: 2, misses: 1 });
    assert.equal(cache.sizeTaken, 4);
    assert.deepEqual([...cache.keys()], ['one']);
    cache.delete('one');
    assert.equal(shownCaches().get('test-texts')?.taken, 0);
  });

  test('of entries shows their number, or their weight if only that is bounded', () => {
    const numbered = countedCache('test-numbered', 'entries', new LRUCache<string, true>({ max: 3 }));
    const weighed = countedCache(
      'test-weighed',
      'entries',
      new LRUCache<string, number>({ maxSize: 50, sizeCalculation: (weight) => weight }),
    );
    numbered.set('one', true);
    weighed.set('heavy', 20);
    const { taken, max } = shownCaches().get('test-numbered') ?? assert.fail();
    assert.deepEqual([taken, max], [1, 3]);
    const weight = shownCaches().get('test-weighed') ?? assert.fail();
    assert.deepEqual([weight.taken, weight.max], [20, 50]);
  });

  test('is shown together with others of its name, which are bounded in the same way', () => {
    const [one, other] = [{ size: 1 }, { size: 10 }];
    const sizeOf = ({ size }: { readonly size: number }) => ({ taken: size, max: 100 });
    const looks = showCache('test-both', 'entries', one, sizeOf);
    showCache('test-both', 'entries', other, sizeOf).hits += 5;
    looks.hits += 1;
    assert.deepEqual(shownCaches().get('test-both'), { unit: 'entries', taken: 11, max: 200, hits: 6, misses: 0 });
    assert.throws(() => showCache('test-both', 'disk', one, sizeOf), /bounded in two ways/);
    assert.deepEqual([one.size, other.size], [1, 10], 'both live until here');
  });

  test('that nobody uses any more leaves, and what was found in it still counts', async () => {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    assert.ok(typeof collect === 'function');
    const use = () => {
      const cache = countedCache('test-left', 'entries', new LRUCache<string, true>({ max: 3 }));
      cache.set('one', true);
      assert.equal(cache.get('one'), true);
    };
    use();
    await eventually('the cache is collected', () => {
      collect();
      return shownCaches().get('test-left')?.max === 0;
    });
    assert.deepEqual(shownCaches().get('test-left'), { unit: 'entries', taken: 0, max: 0, hits: 1, misses: 0 });
  });
});
