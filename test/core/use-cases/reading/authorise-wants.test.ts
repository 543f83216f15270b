/** Which objects a fetch may want. The attack: the id of an object that no ref ever reached, or none after a purge. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { type ObjectId, plusMs } from '../../../../core/kernel/ids.ts';
import { LEFT_TIP_SPAN_MS } from '../../../../core/kernel/limits.ts';
import type { ObjectReader } from '../../../../core/ports/object-database.ts';
import type { RepositoryEvent } from '../../../../core/repository/events.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import {
  CLOCK_AHEAD_MS_MAX,
  unauthorisedMentions,
  unauthorisedWants,
} from '../../../../core/use-cases/reading/authorise-wants.ts';
import { FIRST_AT, given } from '../../../support/fold.ts';
import { NO_HISTORY, NO_SEARCH } from '../../../support/no-history.ts';
import { branch, layer, moved, oid, pushed, tag } from '../../../support/repository-history.ts';

const [A, B, C, D, E] = [oid('a'), oid('b'), oid('c'), oid('d'), oid('e')];
const created = [moved(branch('main'), null, A), moved(tag('v1'), null, B, { type: 'tag', peeled: C })];
const first = pushed(created, { layer: layer(1) });
/** The same push to a version that stored what no ref reached. */
const old = pushed(created, { layer: layer(1), once_reached: false });

function started(
  history: readonly RepositoryEvent[],
  existing: readonly ObjectId[],
  reached: readonly ObjectId[] = [],
) {
  const state = given(repositories, ...history);
  assert.ok(state.status === 'open');
  const asked: string[] = [];
  const unused = (): never => {
    throw new Error('An authorisation does not read this');
  };
  const reader: ObjectReader = {
    lookup: async (ids) => {
      asked.push('lookup');
      return ids.map((id) => (existing.includes(id) ? { id, type: 'commit', sizeBytes: 1 } : null));
    },
    reachable: async (ids, tips, tipsKey) => {
      asked.push(
        `reachable from ${[...tips]
          .sort((a, b) => (a < b ? -1 : 1))
          .map((id) => id[0])
          .join('')} at ${tipsKey}`,
      );
      return new Set(ids.filter((id) => reached.includes(id)));
    },
    startingWith: unused,
    tips: unused,
    commit: unused,
    tag: unused,
    commits: unused,
    commitSeconds: unused,
    tree: unused,
    entry: unused,
    blob: unused,
    walk: unused,
    count: unused,
    isAncestor: unused,
    commitText: unused,
    archiveReadsRefs: unused,
    archive: unused,
    history: NO_HISTORY,
    search: NO_SEARCH,
    uploadPack: unused,
    close: unused,
  };
  const open = async () => {
    asked.push('open');
    return reader;
  };
  const denied = (wants: readonly ObjectId[], afterMs = 0) =>
    unauthorisedWants(state, wants, 'key', plusMs(FIRST_AT, afterMs), open);
  const hidden = (ids: readonly ObjectId[], afterMs = 0) =>
    unauthorisedMentions(state, ids, 'key', plusMs(FIRST_AT, afterMs), open);
  return { denied, hidden, asked };
}

describe('A want', () => {
  test('of a tip, or of what a tag peels to, is served without reading the objects', async () => {
    const { denied, asked } = started([first], []);
    assert.deepEqual(await denied([A, B, C]), []);
    assert.deepEqual(asked, []);
  });

  test('of an object that does not exist is denied', async () => {
    const { denied } = started([first], [D]);
    assert.deepEqual(await denied([A, E]), [E]);
    assert.deepEqual(await denied([D, E]), [E]);
  });

  test('of any object of a clean repository is served, because a ref reaches it', async () => {
    const { denied, asked } = started([first], [D]);
    assert.deepEqual(await denied([A, D]), []);
    assert.deepEqual(asked, ['open', 'lookup']);
  });

  test('of what was forced away, deleted or refused is served without a walk, because a ref once reached it', async () => {
    const [forced, deleted] = [pushed([moved(branch('main'), A, E)]), pushed([moved(branch('main'), E, null)])];
    for (const history of [
      [first, forced],
      [first, forced, deleted],
      [{ ...first, data: { ...first.data, refused: 1 } }],
    ]) {
      const { denied, asked } = started(history, [A, D, E]);
      assert.deepEqual(await denied([A, D, E], LEFT_TIP_SPAN_MS * 2), []);
      assert.deepEqual(asked, ['open', 'lookup']);
    }
  });

  test('of an object that layers of older versions hold is served if a current ref reaches the object', async () => {
    const history = [old, pushed([moved(branch('main'), A, E)])];
    const { denied, asked } = started(history, [A, D, E], [D]);
    assert.deepEqual(await denied([D], LEFT_TIP_SPAN_MS * 2), []);
    assert.deepEqual(await denied([A, D], LEFT_TIP_SPAN_MS * 2), [A]);
    assert.ok(asked.includes('reachable from bce at key'));
  });

  test('of an object from the refused part of a push to an older version is denied', async () => {
    const { denied } = started([{ ...old, data: { ...old.data, refused: 1 } }], [A, D]);
    assert.deepEqual(await denied([D]), [D]);
  });

  test('of a tip of an older version that its ref has left is served for a minute, for clients that saw it', async () => {
    const { denied } = started([old, pushed([moved(branch('main'), A, null)])], [A, B, C]);
    assert.deepEqual(await denied([A], 1_000), []);
    assert.deepEqual(await denied([A], 1_000 + LEFT_TIP_SPAN_MS), []);
    assert.deepEqual(await denied([A], 1_001 + LEFT_TIP_SPAN_MS), [A]);
  });

  test('of such a tip that a node with a clock ahead saw left is not served until that time comes', async () => {
    const { denied } = started([old, pushed([moved(branch('main'), A, null)])], [A, B, C]);
    assert.deepEqual(await denied([A], 1_000 - CLOCK_AHEAD_MS_MAX), []);
    assert.deepEqual(await denied([A], 999 - CLOCK_AHEAD_MS_MAX), [A]);
  });
});

test('ids that a client only mentions are reported if they exist and it could not fetch them', async () => {
  const forced = pushed([moved(branch('main'), A, D)]);
  const { hidden } = started([old, forced], [A, B, D], [B]);
  assert.deepEqual(await hidden([A, B, C, D, E], 1_000), []);
  assert.deepEqual(await hidden([A, B, C, D, E], LEFT_TIP_SPAN_MS * 2), [A]);
  assert.deepEqual(await started([first, forced], [A, B, D]).hidden([A, B, C, D, E], LEFT_TIP_SPAN_MS * 2), []);
});
