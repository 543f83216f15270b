/** What an erasure removes from storage and keeps outside the database, and what a restored database makes of it. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { LOG_START, streamName } from '../../../../core/kernel/envelope.ts';
import {
  type AccountId,
  type EventId,
  plusMs,
  type Timestamp,
  timestamp,
  type WebhookDeliveryId,
} from '../../../../core/kernel/ids.ts';
import type { EventStore } from '../../../../core/ports/event-store.ts';
import type { LayerStore } from '../../../../core/ports/layer-store.ts';
import type { StoredSession } from '../../../../core/ports/session-store.ts';
import { layerKey } from '../../../../core/repository/layer.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import { ERASURE_REPEATED_AFTER_MS, eraseLeftovers } from '../../../../core/use-cases/erasing/erase-leftovers.ts';
import { repeatErasures } from '../../../../core/use-cases/erasing/repeat-erasures.ts';
import { closeRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { accepted, authenticate, newAccount, newToken } from '../../../support/accounts.ts';
import { startGitReading } from '../../../support/git-reading.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryDeliveryStore, createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryLayerStore } from '../../../support/memory/layer-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { once } from '../../../support/object-database.ts';

async function keysIn(store: LayerStore): Promise<readonly string[]> {
  return (await Array.fromAsync(store.list(''))).map(({ key }) => key);
}

function sessionOf(account: AccountId, now: Timestamp): StoredSession {
  const times = { createdAt: now, seenAt: now, expiresAt: plusMs(now, 24 * 60 * 60_000) };
  const place = { addressRef: null, agentRef: null };
  return {
    idHash: 'a'.repeat(64),
    handle: 'one',
    account,
    epoch: 0,
    status: 'signed-in',
    kept: {},
    ...times,
    ...place,
  };
}

describe('The storage of an erased account', () => {
  async function withPush(context: TestContext) {
    const reading = await startGitReading();
    context.onTestFinished(() => reading.close());
    const { node, git, account, database } = reading;
    await reading.push({ 'refs/heads/main': git.commit({ file: 'text\n' }) });
    const { id } = await reading.current();
    const platformStore = database.layers;
    const erasing = { ...node, platformStore, deliveries: createMemoryDeliveryStore() };
    const expiries = async () => {
      const page = await node.events.readStream(streamName('repository', id), { direction: 'forwards', limit: 100 });
      return page.filter(({ type }) => type === 'LayersExpired').map(({ data }) => data['reason']);
    };
    return { reading, account, id, platformStore, erasing, expiries };
  }

  test('is empty immediately, but for the record of the erasure', async (context) => {
    const { account, id, platformStore, erasing, expiries } = await withPush(context);
    const unnamed = layerKey(`repositories/${id}/layers/${erasing.ids.next()}.tar`);
    await platformStore.put(unnamed, once(new Uint8Array(5)), 5);
    assert.equal((await keysIn(platformStore)).length, 2);
    accepted(await eraseAccount(erasing, CAUSE, account));
    assert.deepEqual(await expiries(), ['erasure']);
    assert.deepEqual(await keysIn(platformStore), [`erasures/${account}`]);
  });

  test('loses repositories that were deleted before, too', async (context) => {
    const { account, id, platformStore, erasing, expiries } = await withPush(context);
    await closeRepository(erasing, { account, cause: CAUSE }, id);
    accepted(await eraseAccount(erasing, CAUSE, account));
    assert.deepEqual(await expiries(), ['erasure']);
    assert.deepEqual(await keysIn(platformStore), [`erasures/${account}`]);
  });

  test('is emptied by the next try if the process dies in between, without a second event', async (context) => {
    const { account, platformStore, erasing, expiries } = await withPush(context);
    const dying: LayerStore = {
      ...platformStore,
      delete: async () => {
        throw new Error('killed');
      },
    };
    await assert.rejects(eraseAccount({ ...erasing, platformStore: dying }, CAUSE, account), /killed/);
    accepted(await eraseAccount(erasing, CAUSE, account));
    assert.deepEqual(await expiries(), ['erasure']);
    assert.deepEqual(await keysIn(platformStore), [`erasures/${account}`]);
  });

  // A push, a delivery and a sign-in that began before the erasure store what they bring after it.
  test('loses later what requests under way stored after the erasure', async (context) => {
    const { account, id, platformStore, erasing } = await withPush(context);
    const { clock, ids, deliveries, sessions } = erasing;
    const marks = createMemoryPolicyMarks();
    accepted(await eraseAccount(erasing, CAUSE, account));
    const late = layerKey(`repositories/${id}/layers/${ids.next()}.tar`);
    await platformStore.put(late, once(new Uint8Array(5)), 5);
    const body = new Uint8Array(1);
    const attempt = { delivery: ids.next<WebhookDeliveryId>(), series: 1, attempt: 1, eventId: ids.next<EventId>() };
    await deliveries.putAnswer({ ...attempt, account, body, storedAt: clock.now() });
    await sessions.add(sessionOf(account, clock.now()));
    const policy = { ...erasing, marks };
    await eraseLeftovers(policy, { aborted: false });
    assert.deepEqual((await keysIn(platformStore)).length, 2, 'too early: its request may not be over');
    clock.advance(ERASURE_REPEATED_AFTER_MS - 1);
    await eraseLeftovers(policy, { aborted: false });
    assert.equal((await keysIn(platformStore)).length, 2);
    clock.advance(1);
    await eraseLeftovers(policy, { aborted: false });
    assert.deepEqual(await keysIn(platformStore), [`erasures/${account}`]);
    assert.ok(await deliveries.isEmpty());
    assert.deepEqual(await sessions.list(account, timestamp('2000-01-01T00:00:00.000Z')), []);
  });

  test('loses its sessions and challenges immediately', async (context) => {
    const { account, erasing } = await withPush(context);
    const { clock, sessions, challenges } = erasing;
    const now = clock.now();
    await sessions.add(sessionOf(account, now));
    const challenge = { account, purpose: 'sign-in', challenge: 'x' };
    await challenges.put(challenge, { now, expiresAt: plusMs(now, 1_000) });
    accepted(await eraseAccount(erasing, CAUSE, account));
    assert.deepEqual(await sessions.list(account, now), []);
    assert.equal(await challenges.take(challenge, now), false);
  });

  test('loses the bodies of deliveries', async (context) => {
    const { account, erasing } = await withPush(context);
    const { deliveries, ids, clock } = erasing;
    const eventId = ids.next<EventId>();
    const sha256 = '0'.repeat(64);
    await deliveries.putPayloads([{ eventId, account, body: '{"login":"ada"}', sha256, storedAt: clock.now() }]);
    accepted(await eraseAccount(erasing, CAUSE, account));
    assert.ok(await deliveries.isEmpty());
  });
});

/** A log with the same events, as a backup has them. */
async function restored(log: EventStore): Promise<EventStore> {
  const copy = createMemoryEventStore();
  for (const { stream, revision, position: _, ...event } of await log.readAll(LOG_START, 1_000)) {
    const result = await copy.append({ stream, expected: revision === 0 ? 'none' : revision - 1, events: [event] });
    assert.equal(result.outcome, 'appended');
  }
  return copy;
}

describe('A database that was restored from before an erasure', () => {
  async function beforeAndAfter() {
    const log = createMemoryEventStore();
    const vault = createMemoryVault();
    const platformStore = createMemoryLayerStore();
    // The vault of the backup still opens what the erasure destroyed.
    const keptVault = { ...vault, eraseAccount: async () => undefined, delete: async () => undefined };
    const node = { ...(await startNode(log, { vault: keptVault })), platformStore };
    const ada = await newAccount(node, 'ada');
    const bob = await newAccount(node, 'bob');
    const token = await newToken(node, ada);
    const backup = await restored(log);
    accepted(await eraseAccount(node, CAUSE, ada));
    const started = async (events: EventStore) => ({
      ...(await startNode(events, { vault })),
      ...{ platformStore, log: keepLog() },
    });
    const emailRef = async (account: AccountId) => {
      const { state } = await (await started(backup)).entities.get(accounts, account);
      return state.status === 'open' ? state.emailRef : assert.fail();
    };
    return {
      log,
      vault,
      platformStore,
      backup,
      started,
      ada,
      bob,
      token,
      refs: [await emailRef(ada), await emailRef(bob)],
    };
  }

  // The attack: whoever was erased is back after an operator restored a backup.
  test('is erased again before it serves anybody', async () => {
    const { vault, backup, started, ada, bob, token, refs } = await beforeAndAfter();
    const node = await started(backup);
    const [adaRef = assert.fail(), bobRef = assert.fail()] = refs;
    assert.notEqual(await authenticate(node, token.secret), null);
    assert.notEqual(await vault.get(ada, 'email', adaRef), null);
    await repeatErasures(node);
    assert.equal(await authenticate(node, token.secret), null);
    assert.equal(await vault.get(ada, 'email', adaRef), null);
    assert.equal((await node.entities.get(accounts, bob)).state.status, 'open');
    assert.notEqual(await vault.get(bob, 'email', bobRef), null, 'nobody else is touched');
    const head = await backup.head();
    await repeatErasures(node);
    assert.equal(await backup.head(), head, 'the next start has nothing to do');
  });

  test('is erased again where only the vault was restored', async () => {
    const { log, vault, started, ada, refs } = await beforeAndAfter();
    const [adaRef = assert.fail()] = refs;
    assert.notEqual(await vault.get(ada, 'email', adaRef), null);
    await repeatErasures(await started(log));
    assert.equal(await vault.get(ada, 'email', adaRef), null);
  });

  test('ignores erasures of accounts that it does not know, and objects that are no records', async () => {
    const { platformStore, started } = await beforeAndAfter();
    await platformStore.put(layerKey('erasures/README'), once(new Uint8Array(1)), 1);
    const empty = createMemoryEventStore();
    await repeatErasures(await started(empty));
    assert.deepEqual(await empty.readAll(LOG_START, 10), []);
  });
});
