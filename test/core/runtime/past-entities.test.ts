/** Accounts as they were at an earlier place of the log. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { accounts } from '../../../core/account/evolve.ts';
import { LOG_START, type LogPosition, type RecordedEvent, streamName } from '../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../core/kernel/ids.ts';
import { createPastEntities } from '../../../core/runtime/past-entities.ts';
import { newAccount, newId } from '../../support/events.ts';
import { createMemorySnapshots } from '../../support/memory/snapshots.ts';
import { startNode } from '../../support/node.ts';
import { Appender } from '../../support/read-models.ts';
import { watchLog } from '../../support/watched-log.ts';

/**
 * Makes an account whose plan changes with every event, between events of another. FREE after an even number of
 * changes.
 */
async function changingAccount(changes: number) {
  const log = watchLog();
  const snapshots = createMemorySnapshots();
  const append = new Appender(log);
  const [ada, other] = [newAccount(), newAccount()];
  for (const [account, username] of [
    [ada, 'ada'],
    [other, 'eve'],
  ] as const) {
    const refs = { email_ref: 'a'.repeat(64), password_hash_ref: 'b'.repeat(64) };
    const data = { username, ...refs, plan: 'FREE' };
    await append.append(streamName('account', account), account, 'AccountCreated', data);
  }
  const node = await startNode(log, { snapshots });
  // The account is in memory while its stream grows, so the node saves a snapshot at every thousandth event.
  await node.entities.get(accounts, ada);
  for (let n = 1; n <= changes; n += 1) {
    const plan = n % 2 === 0 ? 'FREE' : 'PRO';
    await append.append(streamName('account', ada), ada, 'PlanChanged', { plan });
    await append.append(streamName('account', other), other, 'PlanChanged', { plan });
  }
  await node.entities.barrier();
  const faults: unknown[] = [];
  const past = createPastEntities({
    ...{ events: log, entities: node.entities, snapshots },
    complete: async (event) => event,
    onFault: (_what, cause) => faults.push(cause),
  });
  const own = (await log.readAll(LOG_START, 100_000)).filter(({ accountId }) => accountId === ada);
  return { log, snapshots, past, ada, own, faults };
}

async function planAt(
  { past, ada }: { readonly past: ReturnType<typeof createPastEntities>; readonly ada: AccountId },
  position: LogPosition,
): Promise<string> {
  const account = await past.accountAt(ada, position);
  return account.status === 'open' ? account.plan : account.status;
}

const planAfter = (events: number): string => (events === 0 ? 'none' : events % 2 === 1 ? 'FREE' : 'PRO');

describe('An account at an earlier position', () => {
  test('is the fold of exactly its events up to there, also at positions between its events', async () => {
    const world = await changingAccount(250);
    const initial = await planAt(world, LOG_START);
    for (const events of [1, 2, 3, 99, 100, 101, 199, 200, 201, 249, 250, 251]) {
      const last = world.own[events - 1] as RecordedEvent;
      assert.equal(await planAt(world, last.position), planAfter(events), `after ${events}`);
      // The position after it is an event of the other account.
      const between = (last.position + 1n) as LogPosition;
      if (events > 1 && events < 251) assert.equal(await planAt(world, between), planAfter(events));
      const before = (last.position - 1n) as LogPosition;
      assert.equal(await planAt(world, before), events === 1 ? initial : planAfter(events - 1));
    }
    assert.deepEqual(world.faults, []);
  });

  test('is read from the nearest snapshot, even if its stream is long', async () => {
    const world = await changingAccount(2_500);
    const { log, own } = world;
    for (const [events, pages] of [
      [2_499, 6],
      [2_001, 1],
      [1_999, 11],
      [1_002, 1],
      [900, 10],
      [3, 1],
    ] as const) {
      const { reads } = log.counts;
      assert.equal(await planAt(world, (own[events - 1] as RecordedEvent).position), planAfter(events));
      // The steps of the binary search, the snapshot's last event, and the pages after it.
      const most = 12 + 1 + pages;
      assert.ok(log.counts.reads - reads <= most, `${log.counts.reads - reads} reads of ${most} for ${events}`);
    }
  });

  test('is not read from a snapshot of a history that the log does not hold', async () => {
    const world = await changingAccount(300);
    const { past, ada, own, snapshots } = world;
    const position = (own[250] as RecordedEvent).position;
    const account = await past.accountAt(ada, position);
    assert.ok(account.status === 'open');
    const state = accounts.snapshots?.write({ ...account, username: 'mallory' }) ?? {};
    const save = (lastEventId: string): Promise<void> =>
      snapshots.save({
        stream: streamName('account', ada),
        revision: 100,
        codeVersion: accounts.snapshots?.version ?? 0,
        state: { last_event_id: lastEventId, state },
      });
    await save(newId());
    assert.deepEqual(await past.accountAt(ada, position), account);
    // With the right last event the same snapshot is used.
    await save(own[100]?.id ?? '');
    const fromSnapshot = await past.accountAt(ada, position);
    assert.equal(fromSnapshot.status === 'open' && fromSnapshot.username, 'mallory');
  });
});
