/** The immutable map and list, compared with `Map` and `Array`. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { AppendList } from '../../../core/kernel/append-list.ts';
import { PersistentMap } from '../../../core/kernel/persistent-map.ts';

const key = fc.integer({ min: 0, max: 200 }).map((n) => `key ${n}`);
const changes = fc.array(fc.tuple(key, fc.option(fc.integer(), { nil: undefined })), { maxLength: 120 });

function applied(map: ReadonlyMap<string, number>, made: readonly (readonly [string, number | undefined])[]) {
  const next = new Map(map);
  for (const [name, value] of made) {
    if (value === undefined) next.delete(name);
    else next.set(name, value);
  }
  return next;
}

describe('A persistent map', () => {
  test('holds the entries of a Map after the same changes, and no older copy changes', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(key, fc.integer())), fc.array(changes, { maxLength: 8 }), (first, rounds) => {
        const versions = [{ map: PersistentMap.from(first), model: new Map(first) }];
        for (const made of rounds) {
          const last = versions.at(-1);
          assert.ok(last !== undefined);
          versions.push({ map: last.map.with(made), model: applied(last.model, made) });
        }
        for (const { map, model } of versions) {
          assert.equal(map.size, model.size);
          assert.equal(map.weight, model.size);
          assert.deepEqual(new Map(map.entries()), model);
          assert.deepEqual(new Set(map.keys()), new Set(model.keys()));
          for (let n = 0; n <= 200; n++) {
            assert.equal(map.get(`key ${n}`), model.get(`key ${n}`));
            assert.equal(map.has(`key ${n}`), model.has(`key ${n}`));
          }
        }
      }),
    );
  });

  test('may be copied twice, and the copies do not affect each other', () => {
    fc.assert(
      fc.property(changes, changes, changes, (first, left, right) => {
        const base = PersistentMap.from<string, number>([]).with(first);
        const [a, b] = [base.with(left), base.with(right)];
        const model = applied(new Map(), first);
        assert.deepEqual(new Map(a.entries()), applied(model, left));
        assert.deepEqual(new Map(b.entries()), applied(model, right));
        assert.deepEqual(new Map(base.entries()), model);
      }),
    );
  });

  test('does not change with the entries it was made from', () => {
    const source = new Map([['a', 1]]);
    const map = PersistentMap.from(source);
    source.set('b', 2);
    assert.equal(map.size, 1);
    assert.equal(map.has('b'), false);
  });
});

describe('A list that grows at its end', () => {
  test('holds the items of an array after the same changes, and no older copy changes', () => {
    // Each step extends any earlier list, so that some lists are extended twice.
    const steps = fc.array(fc.tuple(fc.nat(), fc.integer()), { maxLength: 60 });
    fc.assert(
      fc.property(fc.array(fc.integer(), { maxLength: 5 }), steps, (first, extensions) => {
        const versions = [{ list: AppendList.from(first), model: [...first] }];
        for (const [from, item] of extensions) {
          const base = versions[from % versions.length];
          assert.ok(base !== undefined);
          versions.push({ list: base.list.append(item), model: [...base.model, item] });
        }
        for (const { list, model } of versions) {
          assert.equal(list.length, model.length);
          assert.deepEqual([...list], model);
          for (let at = -model.length - 2; at < model.length + 2; at++) assert.equal(list.at(at), model.at(at));
        }
      }),
    );
  });

  test('iterates over its own items while a newer list adds items to the same array', () => {
    const list = AppendList.from([1, 2]);
    const seen: number[] = [];
    for (const item of list) {
      list.append(3);
      seen.push(item);
    }
    assert.deepEqual(seen, [1, 2]);
  });

  test('does not change with the array it was made from', () => {
    const source = [1];
    const list = AppendList.from(source);
    source.push(2);
    assert.deepEqual([...list], [1]);
  });
});
