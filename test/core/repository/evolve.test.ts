/** The state that a repository's events fold into. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { plusMs } from '../../../core/kernel/ids.ts';
import { LEFT_TIP_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { RepositoryEvent, StoredRefUpdate } from '../../../core/repository/events.ts';
import { LEFT_TIPS_MAX, repositories } from '../../../core/repository/evolve.ts';
import { sortedRefNames } from '../../../core/repository/ref-runs.ts';
import { FIRST_AT, fold, given } from '../../support/fold.ts';
import { branch, layer, moved, oid, pushed, tag } from '../../support/repository-history.ts';

const [A, B, C] = [oid('a'), oid('b'), oid('c')];

function open(...history: readonly RepositoryEvent[]) {
  const state = given(repositories, ...history);
  assert.ok(state.status === 'open');
  return state;
}

const push = (...updates: readonly StoredRefUpdate[]): RepositoryEvent => pushed(updates);

describe("A repository's state", () => {
  test('holds the value that the last push gave to each ref', () => {
    const annotated = moved(tag('v1'), null, C, { type: 'tag', peeled: A });
    const state = open(
      push(moved(branch('main'), null, A), moved(branch('old'), null, A), annotated),
      push(moved(branch('main'), A, B, { kind: 'fast-forward' }), moved(branch('old'), A, null)),
    );
    assert.deepEqual(
      new Map(state.refs.entries()),
      new Map([
        [branch('main'), { id: B, type: 'commit', peeled: null }],
        [tag('v1'), { id: C, type: 'tag', peeled: A }],
      ]),
    );
    assert.equal(state.pushedAt, plusMs(FIRST_AT, 1_000));
  });

  test('lists refs in byte order', () => {
    const names = ['b', 'B', 'a-b', 'a/b', '\uff61', '\u{1f600}'].map(branch);
    const state = open(push(...names.map((name) => moved(name, null, A)), moved(tag('a'), null, A)));
    const expected = [...names, tag('a')].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    assert.deepEqual(sortedRefNames(state.refs), expected);
    assert.equal(sortedRefNames(state.refs), sortedRefNames(state.refs), 'sorted once');
  });

  test('lists the layers in the order of their pushes, with the sum of their sizes', () => {
    const state = open(
      pushed([moved(branch('a'), null, A)], { layer: layer(1, 10) }),
      pushed([moved(branch('a'), A, B)], { layer: layer(2, 5) }),
      push(moved(branch('a'), B, null)),
    );
    assert.deepEqual(
      [...state.layers].map(({ id }) => id),
      [layer(1).id, layer(2).id],
    );
    assert.equal(state.layersSizeBytes, 15);
  });

  test('cannot be folded from a wide push whose parts were not read', () => {
    const parts = { stream: 'refUpdates-x', count: 1, updates: 1, sha256: '' };
    assert.throws(() => given(repositories, pushed([], { parts })), TypeError);
    assert.equal(open(pushed([moved(branch('a'), null, A)], { parts })).refs.size, 1);
  });

  test('has a weight that grows with each ref and the length of its name, and returns to zero', () => {
    const none = repositories.sizeBytes(open());
    const short = repositories.sizeBytes(open(push(moved(branch('a'), null, A))));
    const long = repositories.sizeBytes(open(push(moved(branch('a'.repeat(200)), null, A))));
    assert.ok(none < short && short + 199 < long);
    const state = open(push(moved(branch('a'), null, A)), push(moved(branch('a'), A, null)));
    assert.equal(state.refs.weight, 0);
  });
});

describe('A repository', () => {
  const first = push(moved(branch('main'), null, A));

  test('is clean while refs were only created and fast-forwarded', () => {
    assert.equal(open().clean, true);
    assert.equal(open(first, push(moved(branch('main'), A, B, { kind: 'fast-forward' }))).clean, true);
  });

  test('stops being clean when a ref is deleted or forced or a command is refused, and stays so', () => {
    const later = push(moved(branch('x'), null, C));
    for (const dirty of [
      push(moved(branch('main'), A, null)),
      push(moved(branch('main'), A, B)),
      pushed([moved(branch('y'), null, B)], { refused: 1 }),
    ]) {
      assert.equal(open(first, dirty).clean, false);
      assert.equal(open(first, dirty, later).clean, false);
    }
  });
});

describe('Tips that a ref no longer names', () => {
  const times = (...ms: readonly number[]) => {
    const state = fold(
      repositories,
      ms.map((at, index) => {
        const [before, after] = [oid(`a${index}`), oid(`a${index + 1}`)];
        const update = moved(branch('main'), index === 0 ? null : before, after);
        return { event: push(update), at: plusMs(FIRST_AT, at) };
      }),
    );
    assert.ok(state.status === 'open');
    return state.leftTips.map(({ id }) => id);
  };

  test('are kept for a minute, to its last millisecond', () => {
    assert.deepEqual(times(0, 1_000, 1_000 + LEFT_TIP_SPAN_MS), [oid('a1'), oid('a2')]);
    assert.deepEqual(times(0, 1_000, 1_001 + LEFT_TIP_SPAN_MS), [oid('a2')]);
  });

  test("are kept for deletions and forced moves; after a fast-forward the ref's history still reaches them", () => {
    const state = open(
      push(moved(branch('a'), null, A), moved(branch('b'), null, B), moved(branch('c'), null, C)),
      push(moved(branch('a'), A, null), moved(branch('b'), B, C), moved(branch('c'), C, A, { kind: 'fast-forward' })),
    );
    assert.deepEqual(
      state.leftTips.map(({ id }) => id),
      [A, B],
    );
  });

  test('are bounded in number, and the newest are kept', () => {
    const names = Array.from({ length: LEFT_TIPS_MAX + 1 }, (_, n) => branch(`b${n}`));
    const id = (n: number) => oid(n.toString(16).padStart(8, '0'));
    const state = open(
      push(...names.map((name, n) => moved(name, null, id(n)))),
      push(...names.map((name, n) => moved(name, id(n), null))),
    );
    assert.equal(state.leftTips.length, LEFT_TIPS_MAX);
    assert.equal(state.leftTips[0]?.id, id(1));
  });
});
