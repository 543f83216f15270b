/** How compaction, expiry, closing and reopening change a repository. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { canonicalJson } from '../../../core/kernel/json.ts';
import { APPEND_SIZE_BYTES_MAX } from '../../../core/kernel/limits.ts';
import type { LayersCompacted, LayersExpired, RepositoryEvent } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from '../../../core/repository/limits.ts';
import { given } from '../../support/fold.ts';
import { branch, layer, moved, oid, pushed } from '../../support/repository-history.ts';

const [A, B] = [oid('a'), oid('b')];
const closed: RepositoryEvent = { type: 'RepositoryClosed', data: {} };
const reopened: RepositoryEvent = {
  type: 'RepositoryReopened',
  data: { default_branch: null, size_bytes: 0, pushed_at: null },
};

function open(...history: readonly RepositoryEvent[]) {
  const state = given(repositories, ...history);
  assert.ok(state.status === 'open');
  return state;
}

/** Returns pushes that each bring a layer of ten bytes. The numbers name the layers. */
function pushes(...numbers: readonly number[]): RepositoryEvent[] {
  return numbers.map((n) => pushed([moved(branch(`b${n}`), null, A)], { layer: layer(n, 10) }));
}

function compacted(
  removed: readonly number[],
  added: readonly number[],
  more: Partial<LayersCompacted['data']> = {},
): LayersCompacted {
  return {
    type: 'LayersCompacted',
    data: {
      revision: 0,
      removed: removed.map((n) => ({ id: layer(n).id, size_bytes: 10 })),
      added: added.map((n) => ({ ...layer(n, 15), holds: 'merged' })),
      shrink_epoch: 1,
      clean: true,
      once_reached: true,
      ...more,
    },
  };
}

function expired(
  numbers: readonly number[],
  current: boolean,
  shrink_epoch: number,
  compacted_at: number | null = null,
): LayersExpired {
  const layers = numbers.map((n) => ({ id: layer(n).id, size_bytes: 10, current }));
  return { type: 'LayersExpired', data: { layers, reason: 'retention', compacted_at, shrink_epoch } };
}

function numbersOf({ layers }: ReturnType<typeof open>): number[] {
  return [...layers].map(({ id }) => Number(id.slice(-12)));
}

describe('A compaction', () => {
  test('puts its layers where the removed ones were, and raises the shrink epoch', () => {
    const state = open(...pushes(1, 2, 3), compacted([1, 2], [7]), ...pushes(4));
    assert.deepEqual(numbersOf(state), [7, 3, 4]);
    assert.deepEqual([state.layersSizeBytes, state.shrinkEpoch], [35, 1]);
    const again = open(...pushes(1, 2, 3), compacted([1, 2], [7]), compacted([7, 3], [8, 9], { shrink_epoch: 2 }));
    assert.deepEqual([numbersOf(again), again.shrinkEpoch], [[8, 9], 2]);
  });

  test('does not change refs, and records whether the layers hold only objects that the refs reach', () => {
    const forced = pushed([moved(branch('b1'), A, B, { kind: 'force-push' })]);
    const kept = open(...pushes(1), forced, compacted([1], [7, 8], { clean: false }));
    assert.deepEqual([kept.clean, kept.leftTips.length, kept.refs.get(branch('b1'))?.id], [false, 1, B]);
    const clean = open(...pushes(1), forced, compacted([1], [7]));
    assert.deepEqual([clean.clean, clean.leftTips], [true, []], 'tips that refs left can no longer be fetched');
  });

  test('throws if it names layers that are not in the list, or does not raise the shrink epoch', () => {
    assert.throws(() => open(...pushes(1), compacted([1, 2], [7])), TypeError);
    assert.throws(() => open(...pushes(1), compacted([], [7])), TypeError);
    assert.throws(() => open(...pushes(1), compacted([1], [7], { shrink_epoch: 0 })), TypeError);
    assert.throws(() => given(repositories, ...pushes(1), closed, compacted([1], [7])), TypeError);
  });

  test('fits into one append with as many layers as one event may remove', () => {
    const ids = Array.from({ length: LAYERS_REMOVED_AT_ONCE_MAX }, (_, n) => n);
    const { data } = compacted(ids, [1, 2, 3]);
    const removed = data.removed.map(({ id }) => ({ id, size_bytes: Number.MAX_SAFE_INTEGER }));
    assert.ok(canonicalJson({ ...data, removed }).length < APPEND_SIZE_BYTES_MAX - 64 * 1024);
    const { data: gone } = expired(ids, false, 1);
    const layers = gone.layers.map((one) => ({ ...one, size_bytes: Number.MAX_SAFE_INTEGER }));
    assert.ok(canonicalJson({ ...gone, layers }).length < APPEND_SIZE_BYTES_MAX - 32 * 1024);
  });
});

describe('Layers that expire', () => {
  test('do not change the list if a compaction removed them before', () => {
    const before = open(...pushes(1, 2), compacted([1, 2], [7]));
    const after = open(...pushes(1, 2), compacted([1, 2], [7]), expired([1, 2], false, 1));
    assert.deepEqual([numbersOf(after), after.shrinkEpoch, after.layersSizeBytes], [[7], 1, 15]);
    assert.deepEqual(numbersOf(before), numbersOf(after));
  });

  test('are removed from the list if they were in it, and raise the shrink epoch', () => {
    const state = open(...pushes(1, 2, 3), expired([2], true, 1));
    assert.deepEqual([numbersOf(state), state.shrinkEpoch, state.layersSizeBytes], [[1, 3], 1, 20]);
  });
});

describe('A closed repository', () => {
  test('takes no push, and keeps its state until it is reopened', () => {
    const history = [...pushes(1, 2), compacted([1, 2], [7]), ...pushes(3)];
    assert.throws(() => given(repositories, ...history, closed, ...pushes(4)), TypeError);
    assert.throws(() => given(repositories, ...history, closed, closed), TypeError);
    const [before, after] = [open(...history), open(...history, closed, reopened)];
    assert.deepEqual(numbersOf(after), numbersOf(before));
    assert.deepEqual(
      [after.shrinkEpoch, after.refs, after.pushedAt],
      [before.shrinkEpoch, before.refs, before.pushedAt],
    );
    assert.equal(open(...history, closed, reopened, ...pushes(5)).layers.length, 3);
    assert.equal(given(repositories, ...history, closed, reopened, closed).status, 'closed');
  });

  test('cannot be reopened after a layer of it has expired', () => {
    const gone = given(repositories, ...pushes(1, 2), closed, expired([1], true, 1));
    assert.ok(gone.status === 'closed' && gone.expired);
    assert.deepEqual([numbersOf(gone.before), gone.before.shrinkEpoch], [[2], 1]);
    assert.throws(() => given(repositories, ...pushes(1, 2), closed, expired([1], true, 1), reopened), TypeError);
    assert.throws(() => given(repositories, reopened), TypeError, 'an open repository cannot be reopened');
  });

  test('can be reopened after layers that a compaction had replaced have expired', () => {
    const history = [...pushes(1, 2), compacted([1, 2], [7]), closed, expired([1, 2], false, 1, 2)];
    const state = open(...history, reopened);
    assert.deepEqual([numbersOf(state), state.expiredThrough], [[7], 2]);
  });

  test('takes as much memory as the state that it keeps', () => {
    const history = pushes(1, 2);
    assert.equal(
      repositories.sizeBytes(given(repositories, ...history, closed)),
      repositories.sizeBytes(open(...history)),
    );
  });
});
