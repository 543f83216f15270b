/** Long work in parts between which others have the event loop. */
import assert from 'node:assert/strict';
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { finish, finishInTurns, inParts, pickInTurns, type Steps, sortInTurns } from '../../../core/kernel/turns.ts';

const MANY = 20_000;
/** The most items that one part may hold. */
const PART_MAX = 1_000;

/** Counts the turns, and the most calls between two of them. */
function counter() {
  const counts = { calls: 0, most: 0, turns: 0 };
  return {
    counts,
    count: () => {
      counts.calls += 1;
      counts.most = Math.max(counts.most, counts.calls);
    },
    nextTurn: async () => {
      counts.turns += 1;
      counts.calls = 0;
      await setImmediate();
    },
  };
}

const numbers = (length: number) => Array.from({ length }, (_, index) => (index * 7919) % length);

describe('Work in turns', () => {
  test('sorts as the language does, equal items in their order', async () => {
    const item = fc.record({ key: fc.nat(20), name: fc.nat() });
    await fc.assert(
      fc.asyncProperty(fc.array(item, { maxLength: 3_000, size: 'max' }), async (items) => {
        const byKey = (a: { readonly key: number }, b: { readonly key: number }) => a.key - b.key;
        assert.deepEqual(await sortInTurns(items, byKey, async () => undefined), items.toSorted(byKey));
      }),
      { numRuns: 20 },
    );
  });

  test('leaves the event loop to others while it sorts a long list', async () => {
    const { counts, count, nextTurn } = counter();
    const sorted = await sortInTurns(
      numbers(MANY),
      (a, b) => {
        count();
        return a - b;
      },
      nextTurn,
    );
    assert.deepEqual(sorted.slice(0, 3), [0, 1, 2]);
    assert.equal(sorted.length, MANY);
    const compared = PART_MAX * Math.ceil(Math.log2(PART_MAX));
    assert.ok(counts.most <= compared, `${counts.most} comparisons in one go`);
  });

  test('leaves the event loop to others while it picks from a long list', async () => {
    const { counts, count, nextTurn } = counter();
    const even = await pickInTurns(
      numbers(MANY).values(),
      (item) => {
        count();
        return item % 2 === 0 ? item : undefined;
      },
      nextTurn,
    );
    assert.equal(even.length, MANY / 2);
    assert.ok(counts.most <= PART_MAX, `${counts.most} items in one go`);
  });

  test('takes no turn for a short list', async () => {
    const { counts, nextTurn } = counter();
    assert.deepEqual(await sortInTurns([2, 1], (a, b) => a - b, nextTurn), [1, 2]);
    assert.deepEqual(await pickInTurns([], () => 1, nextTurn), []);
    assert.equal(counts.turns, 0);
  });

  test('does the steps of a long work in turns, or all in one go, with the same result', async () => {
    function* summed(each: () => void): Steps<number> {
      let sum = 0;
      yield* inParts(numbers(MANY), (number) => {
        each();
        sum += number;
      });
      return sum;
    }
    const { counts, count, nextTurn } = counter();
    const whole = finish(summed(() => undefined));
    assert.equal(whole, (MANY * (MANY - 1)) / 2);
    assert.equal(await finishInTurns(summed(count), nextTurn), whole);
    assert.ok(counts.turns >= MANY / PART_MAX);
    assert.ok(counts.most <= PART_MAX);
  });
});
