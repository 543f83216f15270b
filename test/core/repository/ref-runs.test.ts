/** The refs of a repository in ordered runs, compared with a sorted map, and kept where no push changes them. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { byRefOrder, type RefName, refName } from '../../../core/git/ref-name.ts';
import { objectId } from '../../../core/kernel/ids.ts';
import { PersistentMap } from '../../../core/kernel/persistent-map.ts';
import { changeRefs, type Refs, refRuns, sortedRefNames } from '../../../core/repository/ref-runs.ts';
import type { Ref } from '../../../core/repository/state.ts';

const refOf = (digit: string): Ref => ({ id: objectId(digit.repeat(40)), type: 'commit', peeled: null });
const nameOf = (n: number): RefName => refName(`refs/heads/branch-${(n * 7_919) % 10_007}`);
const NO_REFS: Refs = PersistentMap.from<RefName, Ref>([]);

function created(count: number): Refs {
  return changeRefs(
    NO_REFS,
    Array.from({ length: count }, (_, n) => [nameOf(n), refOf('a')] as const),
  );
}

function assertWhole(refs: Refs): void {
  const runs = refRuns(refs);
  assert.ok(runs.every(({ length }) => length > 0 && length <= 512));
  const listed = runs.flat().map(({ name, ...ref }): [RefName, Ref] => [name, ref]);
  assert.deepEqual(
    listed,
    [...refs.entries()].sort(([a], [b]) => byRefOrder(a, b)),
  );
}

describe('The runs of refs', () => {
  test('hold after any changes what the map of refs holds, in byte order', () => {
    const change = fc.tuple(
      fc.nat(3_000).map(nameOf),
      fc.option(fc.constantFrom('b', 'c').map(refOf), { nil: undefined }),
    );
    fc.assert(
      fc.property(fc.nat(2_500), fc.array(fc.array(change, { maxLength: 900 }), { maxLength: 4 }), (count, rounds) => {
        let refs = created(count);
        for (const changes of rounds) {
          refs = changeRefs(refs, changes);
          assertWhole(refs);
        }
      }),
      { numRuns: 60 },
    );
  });

  test('are the same after a push, but for those of the refs that it changed', () => {
    const before = created(9_000);
    const after = changeRefs(before, [
      [nameOf(17), refOf('b')],
      [nameOf(4_711), undefined],
    ]);
    const kept = new Set(refRuns(before));
    assert.ok(refRuns(after).filter((run) => !kept.has(run)).length <= 2);
    assert.ok(refRuns(before).length > 20);
    assertWhole(after);
    assertWhole(before);
  });

  test('are few after most refs are gone, and none after all are', () => {
    const names = sortedRefNames(created(9_000));
    const most = names.filter((_, at) => at % 50 > 0);
    const few = changeRefs(
      created(9_000),
      most.map((name) => [name, undefined] as const),
    );
    assert.equal(few.size, 180);
    assert.equal(refRuns(few).length, 1);
    assertWhole(few);
    const none = changeRefs(
      few,
      sortedRefNames(few).map((name) => [name, undefined] as const),
    );
    assert.deepEqual(refRuns(none), []);
    assertWhole(changeRefs(none, [[nameOf(1), refOf('c')]]));
  });
});
