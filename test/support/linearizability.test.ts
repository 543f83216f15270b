/** Tests of the checker itself: it accepts every possible history and refuses every impossible one. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { checkRegister, type Operation, type Value } from './linearizability.ts';

type When = readonly [client: number, calledAt: number, answeredAt: number];

function read([client, calledAt, answeredAt]: When, value: Value): Operation {
  return { kind: 'read', client, calledAt, answeredAt, value };
}

function set(
  [client, calledAt, answeredAt]: When,
  from: Value,
  to: Value,
  outcome: 'done' | 'refused' | 'unknown' = 'done',
): Operation {
  return { kind: 'compare-and-set', client, calledAt, answeredAt, from, to, outcome };
}

const POSSIBLE: readonly (readonly [string, readonly Operation[]])[] = [
  ['nothing at all', []],
  ['writes and reads in turn', [set([1, 1, 2], null, 'a'), read([2, 3, 4], 'a'), set([1, 5, 6], 'a', 'b')]],
  ['a read beside a write that sees the old value', [set([1, 1, 4], null, 'a'), read([2, 2, 3], null)]],
  ['a read beside a write that sees the new value', [set([1, 1, 4], null, 'a'), read([2, 2, 3], 'a')]],
  [
    'two concurrent writers of whom the one called later takes effect first',
    [set([1, 1, 6], 'b', 'a'), set([2, 2, 5], null, 'b'), read([3, 7, 8], 'a')],
  ],
  ['a loser refused beside the winner', [set([1, 1, 4], null, 'a'), set([2, 2, 3], null, 'b', 'refused')]],
  ['an unknown outcome that happened', [set([1, 1, 2], null, 'a', 'unknown'), read([2, 3, 4], 'a')]],
  ['an unknown outcome that never happened', [set([1, 1, 2], null, 'a', 'unknown'), read([2, 3, 4], null)]],
  [
    'an unknown outcome that took effect after its client went on',
    [set([1, 1, 2], null, 'a', 'unknown'), read([1, 3, 4], null), read([1, 5, 6], 'a')],
  ],
];

const IMPOSSIBLE: readonly (readonly [string, readonly Operation[]])[] = [
  ['a stale read', [set([1, 1, 2], null, 'a'), read([2, 3, 4], null)]],
  ['a read that goes back', [set([1, 1, 6], null, 'a'), read([2, 2, 3], 'a'), read([2, 4, 5], null)]],
  [
    'two readers that disagree on the order',
    [set([1, 1, 20], null, 'a'), set([2, 1.5, 20.5], 'a', 'b'), read([3, 2, 3], 'b'), read([4, 4, 5], 'a')],
  ],
  ['two winners from one value', [set([1, 1, 4], null, 'a'), set([2, 2, 3], null, 'b')]],
  ['a refusal while the register held the value', [set([1, 1, 2], null, 'a', 'refused')]],
  ['a refused value that is read', [set([1, 1, 2], 'x', 'a', 'refused'), read([2, 3, 4], 'a')]],
  ['a value nobody wrote', [read([1, 1, 2], 'a')]],
  ['a lost acknowledged write', [set([1, 1, 2], null, 'a'), set([1, 3, 4], 'a', 'b'), read([2, 5, 6], 'a')]],
  [
    'an unknown outcome that happened twice',
    [set([1, 1, 2], null, 'a', 'unknown'), read([2, 3, 4], 'a'), read([2, 5, 6], null)],
  ],
  ['an unknown outcome before its call', [read([2, 1, 2], 'a'), set([1, 3, 4], null, 'a', 'unknown')]],
];

describe('The checker of histories', () => {
  for (const [name, history] of POSSIBLE) {
    test(`accepts ${name}`, () => assert.deepEqual(checkRegister(history, null), { linearizable: true }));
  }

  for (const [name, history] of IMPOSSIBLE) {
    test(`refuses ${name}`, () => assert.equal(checkRegister(history, null).linearizable, false));
  }

  test('returns the longest order it found and the operations at which it stopped', () => {
    const history = [set([1, 1, 2], null, 'a'), read([2, 3, 4], null)];
    const verdict = checkRegister(history, null);
    assert.ok(!verdict.linearizable);
    assert.deepEqual(verdict.order, history.slice(0, 1));
    assert.deepEqual(verdict.stuckAt, history.slice(1));
  });

  test('checks a long history of many clients, in whatever order it was recorded', () => {
    const history: Operation[] = [];
    let value: Value = null;
    for (let round = 0; round < 400; round += 1) {
      const start = round * 100;
      const next: string = `value-${round}`;
      history.push(set([0, start + 1, start + 50], value, next));
      for (let client = 1; client < 8; client += 1) {
        history.push(read([client, start + 1 + client, start + 60 + client], client % 2 === 0 ? value : next));
      }
      value = next;
    }
    assert.equal(checkRegister(history.toReversed(), null).linearizable, true);
    for (const at of [5, 200, 399]) {
      const stale = read([9, at * 100 + 97, at * 100 + 98], 'value-3');
      assert.equal(checkRegister([...history, stale], null).linearizable, false);
    }
  });
});
