/** The decisions of a repository's owner. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type LayerId, plusMs, type Timestamp, uuid } from '../../../core/kernel/ids.ts';
import type { RepositoryCommand } from '../../../core/repository/commands.ts';
import { decideRepository } from '../../../core/repository/decide.ts';
import type { RepositoryEvent } from '../../../core/repository/events.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { layerOf } from '../../../core/repository/layers.ts';
import { LAYERS_REMOVED_AT_ONCE_MAX } from '../../../core/repository/limits.ts';
import { FIRST_AT, given } from '../../support/fold.ts';
import { branch, layer, moved, oid, pushed } from '../../support/repository-history.ts';

const closed: RepositoryEvent = { type: 'RepositoryClosed', data: {} };
const changed = (name: string): RepositoryEvent => ({ type: 'DefaultBranchChanged', data: { default_branch: name } });

function decide(history: readonly RepositoryEvent[], command: RepositoryCommand) {
  const decision = decideRepository(given(repositories, ...history), command);
  return 'refused' in decision ? decision.refused.code : decision.events;
}

function choose(branch: string, history: readonly RepositoryEvent[] = [], initialDefaultBranch: string | null = null) {
  return decide(history, { type: 'ChangeDefaultBranch', branch, initialDefaultBranch });
}

describe('A repository', () => {
  test('takes the default branch that its owner chooses', () => {
    assert.deepEqual(choose('trunk'), [changed('trunk')]);
    assert.deepEqual(choose('main', [changed('trunk')]), [changed('main')]);
    assert.deepEqual(choose('main', [], 'trunk'), [changed('main')]);
  });

  test('records the choice of the fallback too, so that no push chooses another one later', () => {
    assert.deepEqual(choose('master'), [changed('master')]);
  });

  test('makes no event for the choice of the current default branch', () => {
    assert.deepEqual(choose('trunk', [changed('trunk')]), []);
    assert.deepEqual(choose('trunk', [], 'trunk'), []);
    assert.deepEqual(choose('trunk', [changed('main')], 'trunk'), [changed('trunk')]);
  });

  test('is closed only once; closing it again makes no event, so that an interrupted deletion can continue', () => {
    assert.deepEqual(decide([], { type: 'CloseRepository' }), [closed]);
    assert.deepEqual(decide([closed], { type: 'CloseRepository' }), []);
  });

  test('refuses a default branch while it is closed', () => {
    assert.equal(choose('main', [closed]), 'repository-not-found');
  });
});

describe('A merge of layers', () => {
  const one = branch('one');
  const history = [1, 2, 3].map((n) => pushed([moved(one, null, oid(`${n}`))], { layer: layer(n, 10) }));
  const merge = (removed: readonly number[], before: readonly RepositoryEvent[] = history) =>
    decide(before, {
      type: 'MergeLayers',
      revision: 2,
      removed: removed.map((n) => uuid<LayerId>(layer(n).id)),
      added: layerOf(layer(9, 25)),
    });

  test('replaces them, in their order, and raises the shrink epoch', () => {
    const removed = [1, 3].map((n) => ({ id: layer(n).id, size_bytes: 10 }));
    const added = [{ ...layer(9, 25), holds: 'merged' }];
    const data = { revision: 2, removed, added, shrink_epoch: 1, clean: true, once_reached: true };
    assert.deepEqual(merge([3, 1]), [{ type: 'LayersCompacted', data }]);
  });

  test('makes no event if one of them has been replaced, though others have not', () => {
    assert.deepEqual(merge([1, 4]), []);
    const [event] = merge([1, 2]);
    assert.ok(typeof event === 'object');
    assert.deepEqual(merge([2, 3], [...history, event]), []);
  });

  test('is refused in a closed repository', () => {
    assert.equal(merge([1, 2], [...history, closed]), 'repository-not-found');
  });
});

describe('The adoption of the layers of a manifest', () => {
  const one = branch('one');
  const history = [1, 2, 3].map((n) => pushed([moved(one, null, oid(`${n}`))], { layer: layer(n, 10) }));
  const ids = (numbers: readonly number[]) => numbers.map((n) => uuid<LayerId>(layer(n).id));
  function adopt(layers: { gone: readonly number[]; replaced?: readonly number[]; added?: readonly number[] }) {
    const [gone, replaced] = [ids(layers.gone), ids(layers.replaced ?? [])];
    const added = (layers.added ?? []).map((n) => layerOf(layer(n, 25)));
    const events = decide(history, { type: 'AdoptLayers', revision: 2, gone, replaced, added });
    return typeof events === 'string' ? assert.fail(events) : events;
  }
  const removed = (numbers: readonly number[]) => numbers.map((n) => ({ id: layer(n).id, size_bytes: 10 }));
  const expired = (numbers: readonly number[], shrink_epoch: number): RepositoryEvent => {
    const layers = removed(numbers).map((gone) => ({ ...gone, current: false }));
    return { type: 'LayersExpired', data: { layers, reason: 'purge', compacted_at: null, shrink_epoch } };
  };

  test('puts those that the log does not know in the place of those that are gone, which it lets go', () => {
    const added = [{ ...layer(9, 25), holds: 'retention' }];
    const unknown = { clean: false, once_reached: false };
    const data = { revision: 2, removed: removed([1, 3]), added, shrink_epoch: 1, ...unknown };
    const events = adopt({ gone: [1, 3], added: [9] });
    assert.deepEqual(events, [{ type: 'LayersCompacted', data }, expired([1, 3], 1)]);
    const after = given(repositories, ...history, ...events);
    assert.ok(after.status === 'open');
    assert.deepEqual(
      [...after.layers].map(({ id }) => id),
      ids([9, 2]),
    );
  });

  test('replaces those that are in storage by an event of its own, and lets none of them go', () => {
    const [, second, third] = adopt({ gone: [1], replaced: [2], added: [9] });
    const unknown = { clean: false, once_reached: false };
    const data = { revision: 2, removed: removed([2]), added: [], shrink_epoch: 2, ...unknown };
    assert.deepEqual([second, third], [{ type: 'LayersCompacted', data }, expired([1], 2)]);
  });

  test('leaves a clean repository if no layer is left', () => {
    const events = adopt({ gone: [1, 2, 3] });
    const after = given(repositories, ...history, ...events);
    assert.ok(after.status === 'open');
    assert.deepEqual([after.clean, after.layers.length], [true, 0]);
    const rest = given(repositories, ...history, ...adopt({ gone: [1, 2] }));
    assert.ok(rest.status === 'open');
    assert.deepEqual([rest.clean, rest.layers.length], [false, 1]);
  });

  test('makes no event if none is gone, or one is not in the list', () => {
    assert.deepEqual(
      [adopt({ gone: [], added: [9] }), adopt({ gone: [4] }), adopt({ gone: [1], replaced: [4] })],
      [[], [], []],
    );
  });

  test('is refused in a closed repository', () => {
    const command = { type: 'AdoptLayers', revision: 2, gone: ids([1]), replaced: [], added: [] } as const;
    assert.equal(decide([...history, closed], command), 'repository-not-found');
  });
});

describe('The expiry of replaced layers', () => {
  const removed = [{ id: layer(1).id, size_bytes: 10 }];
  const expire = (history: readonly RepositoryEvent[], compactedAt: number) =>
    decide(history, { type: 'ExpireReplacedLayers', compactedAt, layers: removed });

  test('makes one event, also in a closed repository, and none the second time', () => {
    const [event] = expire([], 4);
    assert.ok(typeof event === 'object' && event.type === 'LayersExpired');
    const { layers, ...data } = event.data;
    assert.deepEqual(layers, [{ ...removed[0], current: false }]);
    assert.deepEqual(data, { reason: 'retention', compacted_at: 4, shrink_epoch: 0 });
    assert.equal(expire([closed], 4).length, 1);
    assert.deepEqual([expire([event], 4), expire([event], 3)], [[], []]);
    assert.equal(expire([event], 9).length, 1);
  });
});

describe('The expiry of a deleted repository', () => {
  const one = branch('one');
  const push = pushed([moved(one, null, oid('1'))], { layer: layer(1, 10) });
  const expire = (history: readonly RepositoryEvent[], closedUntil: Timestamp = plusMs(FIRST_AT, 60_000)) =>
    decide(history, { type: 'ExpireDeleted', closedUntil });

  test('names the layers of the list, once', () => {
    const [event] = expire([push, closed]);
    const layers = [{ id: layer(1).id, size_bytes: 10, current: true }];
    const data = { layers, reason: 'retention', compacted_at: null, shrink_epoch: 1 };
    assert.deepEqual(event, { type: 'LayersExpired', data });
    assert.ok(typeof event === 'object');
    assert.deepEqual([expire([push, closed, event]), expire([closed])], [[], []]);
    assert.equal(decide([push, closed, event], { type: 'ReopenRepository' }), 'objects-expired');
  });

  test('names none of a repository that is open, or was closed later', () => {
    assert.deepEqual(expire([push]), []);
    assert.deepEqual(expire([push, closed], FIRST_AT), []);
  });

  test(`names ${LAYERS_REMOVED_AT_ONCE_MAX} layers together, and the next ones the next time`, () => {
    const holding = (count: number): readonly RepositoryEvent[] => {
      const added = Array.from({ length: count }, (_, n) => ({ ...layer(n + 2), holds: 'merged' }) as const);
      const removed = [{ id: layer(1).id, size_bytes: 10 }];
      const data = { revision: 0, removed, added, shrink_epoch: 1, clean: true, once_reached: true };
      return [push, { type: 'LayersCompacted', data }, closed];
    };
    const history = holding(LAYERS_REMOVED_AT_ONCE_MAX + 1);
    const [event] = expire(history);
    assert.ok(typeof event === 'object' && event.type === 'LayersExpired');
    assert.equal(event.data.layers.length, LAYERS_REMOVED_AT_ONCE_MAX);
    const [last] = expire([...history, event]);
    assert.ok(typeof last === 'object' && last.type === 'LayersExpired');
    assert.deepEqual([last.data.layers.length, expire([...history, event, last])], [1, []]);
    const [whole] = expire(holding(LAYERS_REMOVED_AT_ONCE_MAX));
    assert.ok(typeof whole === 'object');
    assert.deepEqual(expire([...holding(LAYERS_REMOVED_AT_ONCE_MAX), whole]), []);
  });
});
