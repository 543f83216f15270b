/** When a repository holds what no ref reaches, and when that is dropped. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { AppendList } from '../../../core/kernel/append-list.ts';
import { plusMs, timestamp } from '../../../core/kernel/ids.ts';
import { DROPPING_BYTES_MAX } from '../../../core/kernel/limits.ts';
import { decideRepository } from '../../../core/repository/decide.ts';
import type { RepositoryEvent } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { layerOf } from '../../../core/repository/layers.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from '../../../core/repository/limits.ts';
import type { OpenRepository } from '../../../core/repository/state.ts';
import { isDroppingDue, servesAllObjects } from '../../../core/repository/unreached.ts';
import { branch, layer, moved, oid, pushed } from '../../support/repository-history.ts';

const START = timestamp('2026-11-21T10:00:00.000Z');
const RETENTION_MS = 1_000;
const [A, B, C] = [oid('a'), oid('b'), oid('c')];
const MAIN = branch('main');

/** Folds events that are a millisecond apart. */
function open(...events: readonly RepositoryEvent[]): OpenRepository {
  const state = events.reduce(
    (before, event, n) => repositories.evolve(before, event, plusMs(START, n)),
    repositories.initial,
  );
  assert.ok(state.status === 'open');
  return state;
}

function dropped(clean: boolean, shrink_epoch = 1): RepositoryEvent {
  const holds = clean ? 'refs' : 'retention';
  const removed = [{ id: layer(1).id, size_bytes: 1_000 }];
  const added = [{ ...layer(9), holds } as const];
  const data = { revision: 0, removed, added, shrink_epoch, clean, once_reached: true };
  return { type: 'LayersCompacted', data };
}

function merged(once_reached: boolean): RepositoryEvent {
  const removed = [{ id: layer(1).id, size_bytes: 1_000 }];
  const added = [{ ...layer(9), holds: 'merged' } as const];
  return {
    type: 'LayersCompacted',
    data: { revision: 0, removed, added, shrink_epoch: 1, clean: false, once_reached },
  };
}

const created = pushed([moved(MAIN, null, A)], { layer: layer(1) });
const advanced = pushed([moved(MAIN, A, B, { kind: 'fast-forward' })]);
const forced = pushed([moved(MAIN, B, C)]);
const deleted = pushed([moved(MAIN, C, null)]);

describe('A repository is unclean since', () => {
  test('the first push that left something: a forced move, a deletion or a refused command', () => {
    assert.equal(open(created, advanced).uncleanSince, null);
    assert.equal(open(created, advanced, forced, deleted).uncleanSince, plusMs(START, 2));
    assert.equal(open(created, pushed([moved(MAIN, A, null)])).uncleanSince, plusMs(START, 1));
    assert.equal(open({ ...created, data: { ...created.data, refused: 1 } }).uncleanSince, START);
  });

  test('the compaction that dropped one part and kept another, and no longer after one that kept nothing', () => {
    assert.equal(open(created, advanced, forced, dropped(false)).uncleanSince, plusMs(START, 3));
    assert.equal(open(created, advanced, forced, dropped(true)).uncleanSince, null);
  });

  test('the same time after layers were merged, and after a snapshot', () => {
    const state = open(created, advanced, forced, merged(true));
    assert.deepEqual([state.uncleanSince, state.keptSinceEpoch], [plusMs(START, 2), 0]);
    const read = repositories.snapshots?.read(repositories.snapshots.write(state) ?? assert.fail());
    assert.ok(read?.status === 'open');
    assert.deepEqual([read.uncleanSince, read.keptSinceEpoch, read.clean], [plusMs(START, 2), 0, false]);
  });

  test('and a drop is known by its epoch', () => {
    assert.equal(open(created, advanced, forced, dropped(false, 4)).keptSinceEpoch, 4);
  });
});

describe('Every object of the layers is served', () => {
  const old = pushed([moved(MAIN, null, A)], { layer: layer(1), once_reached: false });
  const serves = (...events: readonly RepositoryEvent[]) => servesAllObjects(open(...events));

  test('of a new repository, whatever was forced away, deleted or merged since', () => {
    assert.equal(serves(), true);
    assert.equal(serves(created, advanced, forced, deleted, dropped(false)), true);
    assert.equal(serves({ ...created, data: { ...created.data, refused: 1 } }), true);
  });

  test('of no repository with a layer from a version that stored what no ref reached, or merged from one', () => {
    assert.equal(serves(old), false);
    assert.equal(serves(created, { ...old, data: { ...old.data, layer: layer(2) } }), false);
    assert.equal(serves(old, merged(false)), false);
    assert.equal(serves(old, merged(true)), false);
    assert.equal(serves(pushed([moved(MAIN, null, A)], { once_reached: false })), true);
  });

  test('again from the drop on that says so, and a merge says nothing', () => {
    assert.equal(serves(old, dropped(false)), true);
    assert.equal(serves(created, merged(false)), true);
    const unknown = dropped(false);
    assert.ok(unknown.type === 'LayersCompacted');
    assert.equal(serves(created, { ...unknown, data: { ...unknown.data, once_reached: false } }), false);
  });

  test('after a snapshot as before it', () => {
    for (const state of [open(created), open(old)]) {
      const read = repositories.snapshots?.read(repositories.snapshots.write(state) ?? assert.fail());
      assert.ok(read?.status === 'open');
      assert.equal(servesAllObjects(read), servesAllObjects(state));
    }
  });

  test('of no repository that is too large for a purge', () => {
    const state = open(created);
    assert.equal(servesAllObjects({ ...state, layersSizeBytes: DROPPING_BYTES_MAX }), true);
    assert.equal(servesAllObjects({ ...state, layersSizeBytes: DROPPING_BYTES_MAX + 1 }), false);
  });
});

describe('What no ref reaches is dropped', () => {
  const state = open(created, advanced, forced);

  test('when the retention has passed since the repository is unclean', () => {
    assert.equal(isDroppingDue(state, plusMs(START, 2 + RETENTION_MS - 1), RETENTION_MS), false);
    assert.equal(isDroppingDue(state, plusMs(START, 2 + RETENTION_MS), RETENTION_MS), true);
    assert.equal(isDroppingDue(open(created), plusMs(START, 10 * RETENTION_MS), RETENTION_MS), false);
  });

  test('unless the layers are too large or too many for one compaction', () => {
    const later = plusMs(START, 10 * RETENTION_MS);
    const isDue = (more: Partial<OpenRepository>) => isDroppingDue({ ...state, ...more }, later, RETENTION_MS);
    assert.equal(isDue({ layersSizeBytes: DROPPING_BYTES_MAX }), true);
    assert.equal(isDue({ layersSizeBytes: DROPPING_BYTES_MAX + 1 }), false);
    const layers = (count: number) => AppendList.from(Array.from({ length: count }, (_, n) => layerOf(layer(n))));
    assert.equal(isDue({ layers: layers(LAYERS_REMOVED_AT_ONCE_MAX) }), true);
    assert.equal(isDue({ layers: layers(LAYERS_REMOVED_AT_ONCE_MAX + 1) }), false);
    assert.equal(isDue({ layers: layers(0) }), false);
  });

  test('by an event only while the list begins with all the layers that it replaces', () => {
    const second = pushed([moved(branch('b'), null, B)], { layer: layer(2) });
    const third = pushed([moved(branch('c'), null, C)], { layer: layer(3) });
    const drop = (...numbers: readonly number[]) => {
      const removed = numbers.map((n) => layerOf(layer(n)).id);
      const added = [{ layer: layerOf(layer(9)), holds: 'refs' }] as const;
      return decideRepository(open(created, second, third), {
        type: 'DropUnreached',
        revision: 1,
        removed,
        added,
        ...{ clean: true, onceReached: false },
      });
    };
    const decided = drop(1, 2);
    assert.ok('events' in decided && decided.events.length === 1);
    assert.deepEqual(decided.events[0]?.data, {
      revision: 1,
      removed: [1, 2].map((n) => ({ id: layer(n).id, size_bytes: 1_000 })),
      added: [{ ...layer(9), holds: 'refs' }],
      shrink_epoch: 1,
      ...{ clean: true, once_reached: false },
    });
    for (const numbers of [
      [2, 3],
      [1, 3],
      [2, 1],
      [1, 2, 3, 4],
    ]) {
      assert.deepEqual(drop(...numbers), { events: [] }, numbers.join());
    }
  });
});
