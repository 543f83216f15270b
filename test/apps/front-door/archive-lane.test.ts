/** Whose archives are made, and who has to wait. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, test, vi } from 'vitest';
import { ARCHIVE_WAIT_MS, createArchiveLane } from '../../../apps/front-door/archive-lane.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { ARCHIVES_AT_ONCE_MAX, ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX } from '../../../core/kernel/limits.ts';
import type { ArchiveLane, ArchivePlace } from '../../../core/use-cases/reading/read-archive.ts';

const account = (name: string) => name as AccountId;
const { signal } = new AbortController();

async function placeOf(lane: ArchiveLane, name: string): Promise<ArchivePlace> {
  const place = await lane.enter(account(name), signal);
  assert.ok('leave' in place);
  return place;
}

/** Takes every place of the node. */
async function fill(lane: ArchiveLane): Promise<readonly ArchivePlace[]> {
  const names = Array.from({ length: ARCHIVES_AT_ONCE_MAX }, (_, index) => {
    return `greedy-${Math.floor(index / ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX)}`;
  });
  return Promise.all(names.map((name) => placeOf(lane, name)));
}

describe('Concurrent archives', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('of one account are refused immediately beyond its share, until one is read', async () => {
    const lane = createArchiveLane();
    const places = await Promise.all(Array.from({ length: ARCHIVES_AT_ONCE_OF_ACCOUNT_MAX }, () => placeOf(lane, 'a')));
    const refused = { refused: { code: 'too-many-archives', waitSeconds: ARCHIVE_WAIT_MS / 1_000 } };
    assert.deepEqual(await lane.enter(account('a'), signal), refused);
    await placeOf(lane, 'b');
    places[0]?.leave();
    places[0]?.leave();
    await placeOf(lane, 'a');
    assert.deepEqual(await lane.enter(account('a'), signal), refused, 'a place that is left twice is one place');
  });

  test('wait for a place of the node, and are refused when none comes free in time', async () => {
    const lane = createArchiveLane();
    const places = await fill(lane);
    const served = lane.enter(account('modest'), signal);
    let late: unknown = 'waits';
    const entering = lane.enter(account('late'), signal).then((outcome) => {
      late = outcome;
    });
    await vi.advanceTimersByTimeAsync(ARCHIVE_WAIT_MS - 1);
    places[0]?.leave();
    assert.ok('leave' in (await served));
    assert.equal(late, 'waits');
    await vi.advanceTimersByTimeAsync(1);
    await entering;
    assert.deepEqual(late, { refused: { code: 'archives-busy', waitSeconds: ARCHIVE_WAIT_MS / 1_000 } });
    places[1]?.leave();
    await placeOf(lane, 'late');
  });

  test('that wait count towards the share of their account, and take turns with those of others', async () => {
    const lane = createArchiveLane();
    const places = await fill(lane);
    const order: string[] = [];
    const enter = async (name: string): Promise<void> => {
      await placeOf(lane, name);
      order.push(name);
    };
    const waiting = ['hasty', 'hasty', 'modest'].map(enter);
    const third = await lane.enter(account('hasty'), signal);
    assert.equal('refused' in third && third.refused.code, 'too-many-archives');
    for (const place of places.slice(0, 3)) place.leave();
    await Promise.all(waiting);
    assert.deepEqual(order, ['hasty', 'modest', 'hasty']);
  });

  test('of a client that leaves while it waits hold nothing', async () => {
    const lane = createArchiveLane();
    const places = await fill(lane);
    const leaving = new AbortController();
    const gone = [lane.enter(account('a'), leaving.signal), lane.enter(account('a'), leaving.signal)];
    leaving.abort(new Error('gone'));
    await Promise.all(gone.map((entering) => assert.rejects(entering, /gone/)));
    places[0]?.leave();
    await placeOf(lane, 'a');
  });
});
