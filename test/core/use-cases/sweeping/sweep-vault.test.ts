/** The sweep removes vault records that no event names after a day, and no others. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { type LogPosition, streamName } from '../../../../core/kernel/envelope.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import type { VaultField, VaultRef } from '../../../../core/kernel/vault-ref.ts';
import { EventStoreError } from '../../../../core/ports/event-store.ts';
import { changePassword, changePlan, createAccount } from '../../../../core/use-cases/accounts/accounts.ts';
import { changeBucket, createBucket, deleteBucket, findBucket } from '../../../../core/use-cases/buckets/buckets.ts';
import { sweepVault, UNNAMED_VAULT_RECORD_SPAN_MS } from '../../../../core/use-cases/sweeping/sweep-vault.ts';
import {
  changeTrustRule,
  createTrustRule,
  deleteTrustRule,
  listTrustRules,
  type NewTrustRule,
} from '../../../../core/use-cases/tokens/trust-rules.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  rotateWebhookSecret,
} from '../../../../core/use-cases/webhooks/webhooks.ts';
import { accepted, newAccount as createdAccount } from '../../../support/accounts.ts';
import { ROLE_SETTINGS } from '../../../support/api-fixture.ts';
import { seesDeletions } from '../../../support/deletions.ts';
import { newAccount, newEvent, newStream } from '../../../support/events.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

const NEVER = new AbortController().signal;

async function newSweep() {
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const events = watchLog(createMemoryEventStore());
  const node = await startNode(events, { clock, vault });
  const log = keepLog();
  const swept: VaultRef[] = [];
  const context = {
    ...node,
    ...{ references: vault.references, log },
    onSwept: ({ ref }: { ref: VaultRef }) => swept.push(ref),
  };
  const account = newAccount();
  return {
    ...{ clock, vault, events, node, log, swept, account, context },
    put: (value: string, field: VaultField = 'source-address') => vault.put(account, field, value),
    append: async (data: JsonObject, sourceAddressRef: string | null = null) => {
      const event = newEvent({ accountId: account, sourceAddressRef, data });
      await events.append({ stream: newStream(), expected: 'none', events: [event] });
    },
    sweep: (signal = NEVER) => sweepVault(context, signal),
  };
}

describe('The sweep of the vault', () => {
  test('removes a record that no event names after a day, and reports it', async () => {
    const s = await newSweep();
    const ref = await s.put('192.0.2.1');
    s.clock.advance(UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    assert.deepEqual(s.swept, [], 'at the limit it stays');
    s.clock.advance(1);
    await s.sweep();
    assert.deepEqual(s.swept, [ref]);
    assert.equal(await s.vault.get(s.account, 'source-address', ref), null);
    assert.deepEqual(s.log.lines, [
      {
        ...{ level: 'info', message: 'Removed a vault record that no event names' },
        fields: { account: s.account, field: 'source-address', ref },
      },
    ]);
  });

  test('keeps what an envelope or any member of the data names, in events of any type', async () => {
    const s = await newSweep();
    const refs = await Promise.all(['1', '2', '3'].map((value) => s.put(value)));
    await s.append({}, refs[0]);
    await s.append({ url_ref: refs[1] ?? null });
    await s.append({ deep: [{ refs: [refs[2] ?? null] }] });
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    await s.sweep();
    assert.deepEqual(s.swept, []);
  });

  test('continues where it stopped: it keeps what an event has named, and checks new records', async () => {
    const s = await newSweep();
    const first = await s.put('1');
    await s.append({}, first);
    for (let n = 0; n < 150; n += 1) await s.append({ n });
    await s.sweep();
    const mark = await s.vault.references.readUpTo();
    assert.equal(mark?.position, await s.events.head());
    const [second, third] = [await s.put('2'), await s.put('3')];
    await s.append({}, second);
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    assert.deepEqual(s.swept, [third]);
  });

  test('starts again if the log is not the one it read before, such as a restored one', async () => {
    const s = await newSweep();
    for (let n = 0; n < 5; n += 1) await s.append({ n });
    await s.sweep();
    const restored = createMemoryEventStore();
    s.events.exchange(restored);
    const ref = await s.put('1');
    // This event is before the mark, so a sweep that continued from the mark would miss it.
    await s.append({}, ref);
    for (let n = 0; n < 10; n += 1) await s.append({ n });
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    assert.deepEqual(s.swept, []);
    assert.deepEqual(
      s.log.lines.map(({ level }) => level),
      ['warn'],
    );
  });

  test('removes nothing if the log fails or becomes shorter while it is read', async () => {
    const s = await newSweep();
    for (let n = 0; n < 150; n += 1) await s.append({ n });
    await s.put('1');
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    let pages = 0;
    const failing = async (...given: Parameters<typeof s.events.readAll>) => {
      pages += 1;
      if (pages === 2) throw new EventStoreError('log-unavailable', 'PostgreSQL cannot be reached');
      return s.events.readAll(...given);
    };
    await assert.rejects(sweepVault({ ...s.context, events: { ...s.events, readAll: failing } }, NEVER), {
      code: 'log-unavailable',
    });
    // That of the sweep, that of the proof of its mark, and that of the empty page.
    const heads = [150n, 150n, 149n] as LogPosition[];
    const ending = { ...s.events, readAll: async () => [], head: async () => heads.shift() ?? assert.fail('no head') };
    await assert.rejects(sweepVault({ ...s.context, events: ending }, NEVER), { code: 'log-diverged' });
    assert.deepEqual(s.swept, []);
  });

  test("reaches a head that is an event of the log's own server, which it cannot see", async () => {
    const s = await newSweep();
    await s.append({});
    const ref = await s.put('192.0.2.1');
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    const own = async () => ((await s.events.head()) + 5n) as LogPosition;
    for (let round = 0; round < 2; round += 1) {
      await sweepVault({ ...s.context, events: { ...s.events, head: own } }, NEVER);
      assert.deepEqual(s.swept, [ref]);
    }
  });

  test('stops early when the server stops', async () => {
    const s = await newSweep();
    await s.append({});
    await s.put('1');
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep(AbortSignal.abort());
    assert.deepEqual(s.swept, []);
  });

  test('removes the records of an account creation that was interrupted before the account was created', async () => {
    const s = await newSweep();
    const ada = await createdAccount(s.node, 'ada');
    const dying = {
      ...s.node,
      passwords: {
        ...s.node.passwords,
        hash: async () => {
          throw new Error('the process died');
        },
      },
    };
    const wanted = { username: 'bob', email: 'bob@example.org', password: 'a long password', plan: 'FREE' } as const;
    await assert.rejects(createAccount(dying, CAUSE, wanted), /died/);
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    assert.equal(s.swept.length, 1);
    const [created] = await s.events.readStream(streamName('account', ada), { direction: 'forwards', limit: 1 });
    assert.equal(await s.vault.get(ada, 'email', created?.data['email_ref'] as VaultRef), 'ada@example.org');
    accepted(await changePassword(s.node, { account: ada, cause: CAUSE }, 'another password'));
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    assert.equal(s.swept.length, 1);
  });

  test('removes the hash of a changed password if the process stopped right after the change', async () => {
    const s = await newSweep();
    const ada = await createdAccount(s.node, 'ada');
    const hashes = async (): Promise<VaultRef[]> => {
      const events = await s.events.readStream(streamName('account', ada), { direction: 'forwards', limit: 1_000 });
      return events.flatMap(({ data }) =>
        typeof data['password_hash_ref'] === 'string' ? [data['password_hash_ref'] as VaultRef] : [],
      );
    };
    const dying = {
      ...s.node,
      vault: {
        ...s.vault,
        delete: async () => {
          throw new Error('the process died');
        },
      },
    };
    await assert.rejects(changePassword(dying, { account: ada, cause: CAUSE }, 'the second password'), /died/);
    // Further back than one page of the stream.
    for (let n = 0; n < 120; n += 1) accepted(await changePlan(s.node, CAUSE, ada, n % 2 === 0 ? 'FREE' : 'PRO'));
    await assert.rejects(changePassword(dying, { account: ada, cause: CAUSE }, 'the third password'), /died/);
    const readable = async () =>
      Promise.all((await hashes()).map(async (ref) => (await s.vault.get(ada, 'password-hash', ref)) !== null));
    assert.deepEqual(await readable(), [true, true, true]);
    await s.sweep();
    assert.deepEqual(await readable(), [false, false, true]);
    assert.deepEqual(s.swept, []);
  });

  test('removes superseded records of webhooks if the process stopped before, and none that is in use', async () => {
    const s = await newSweep();
    const ada = await createdAccount(s.node, 'ada');
    const outgoing = { check: async () => null, send: () => Promise.reject(new Error('Nothing is sent here')) };
    const died = async () => {
      throw new Error('the process died');
    };
    const dying = { ...s.node, outgoing, vault: { ...s.vault, delete: died } };
    const origin = { account: ada, cause: CAUSE, selection: ALL_REPOSITORIES };
    const create = async () => {
      const wanted = { url: 'https://receiver.example/', events: ['push'], active: true } as const;
      return accepted(await createWebhook(dying, origin, wanted, newWebhookSecret())).webhook.id;
    };
    const [moved, deleted, kept] = [await create(), await create(), await create()];
    accepted(await rotateWebhookSecret(dying, origin, moved, newWebhookSecret()));
    for (let n = 0; n < 120; n += 1) accepted(await changePlan(s.node, CAUSE, ada, n % 2 === 0 ? 'FREE' : 'PRO'));
    for (const id of [moved, deleted, kept]) {
      await rotateWebhookSecret(dying, origin, id, newWebhookSecret()).catch(() => null);
    }
    await assert.rejects(rotateWebhookSecret(dying, origin, kept, newWebhookSecret()), /died/);
    const url = 'https://another.example/';
    await assert.rejects(changeWebhook(dying, origin, moved, { url }, newWebhookSecret()), /died/);
    accepted(await rotateWebhookSecret(dying, origin, moved, newWebhookSecret()));
    await assert.rejects(deleteWebhook(dying, origin, deleted), /died/);
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    const events = await s.events.readStream(streamName('account', ada), { direction: 'forwards', limit: 1_000 });
    const refs = (field: VaultField, member: string) =>
      Promise.all(
        events
          .flatMap(({ data }) => (typeof data[member] === 'string' ? [data[member] as VaultRef] : []))
          .map(async (ref) => ((await s.vault.get(ada, field, ref)) === null ? [] : [ref])),
      ).then((found) => found.flat().toSorted());
    const { state } = await s.node.entities.reload(accounts, ada);
    assert.ok(state.status === 'open');
    const now = [...state.webhooks.values()];
    assert.equal(now.length, 2);
    assert.deepEqual(await refs('webhook-url', 'url_ref'), now.map(({ urlRef }) => urlRef).toSorted());
    const secrets = now.flatMap(({ secretRef, previousSecret }) => [secretRef, previousSecret?.ref ?? '']);
    assert.deepEqual(await refs('webhook-secret', 'secret_ref'), secrets.toSorted());
    assert.deepEqual(s.swept, []);
  });

  test('removes superseded records of storage buckets if the process stopped before, and none that is in use', async () => {
    const s = await newSweep();
    const ada = await createdAccount(s.node, 'ada');
    const died = async () => {
      throw new Error('the process died');
    };
    const outgoing = { checkEndpoint: async () => null };
    const dying = { ...s.node, outgoing, vault: { ...s.vault, delete: died } };
    const origin = { account: ada, cause: CAUSE, selection: ALL_REPOSITORIES };
    const create = async (name: string) =>
      accepted(await createBucket(dying, origin, { name, isDefault: false, settings: ROLE_SETTINGS })).bucket.id;
    const [moved, deleted] = [await create('moved'), await create('deleted')];
    const settings = { keyPrefix: 'elsewhere', roleArn: 'arn:aws:iam::123456789012:role/other' };
    await assert.rejects(changeBucket(seesDeletions(dying), origin, moved, { settings }), /died/);
    await assert.rejects(deleteBucket(seesDeletions(dying), origin, deleted), /died/);
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    const events = await s.events.readStream(streamName('account', ada), { direction: 'forwards', limit: 1_000 });
    const kept = async (field: VaultField, member: string) => {
      const refs = events.flatMap(({ data }) => (typeof data[member] === 'string' ? [data[member] as VaultRef] : []));
      return Promise.all(refs.map(async (ref) => (await s.vault.get(ada, field, ref)) !== null));
    };
    assert.deepEqual(await kept('bucket-place', 'place_ref'), [true, true, true]);
    await s.sweep();
    assert.deepEqual(await kept('bucket-place', 'place_ref'), [false, false, true]);
    assert.deepEqual(await kept('bucket-access', 'access_ref'), [false, false, true]);
    const found = accepted(await findBucket(s.node, origin, moved));
    assert.deepEqual([found.settings.keyPrefix, found.settings.roleArn], ['elsewhere/', settings.roleArn]);
    assert.deepEqual(s.swept, []);
  });

  test('removes the conditions of trust rules that were changed or deleted by a node that died', async () => {
    const s = await newSweep();
    const ada = await createdAccount(s.node, 'ada');
    const outgoing = { check: async () => null };
    const origin = {
      account: ada,
      cause: CAUSE,
      guarding: async () => ({ guards: [] }),
      maker: { grants: ['ALL'], selection: ALL_REPOSITORIES },
    } as const;
    const context = { ...s.node, outgoing };
    const dying = { ...context, vault: { ...s.vault, delete: () => Promise.reject(new Error('died')) } };
    const wanted: NewTrustRule = {
      ...{ name: 'rule', issuer: 'https://issuer.example', subject: 'job', claims: {} },
      ...{ grants: ['GIT_HTTP_READ'], scope: 'ALL_REPO', repositoryIds: [] },
    };
    const create = async () => accepted(await createTrustRule(context, origin, wanted)).rule;
    const [changed, deleted, renamed] = [await create(), await create(), await create()];
    await assert.rejects(changeTrustRule(dying, origin, changed.id, { subject: 'other' }), /died/);
    await assert.rejects(deleteTrustRule(dying, origin, deleted.id), /died/);
    accepted(await changeTrustRule(dying, origin, renamed.id, { name: 'renamed' }));
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await s.sweep();
    for (const { conditionsRef } of [changed, deleted]) {
      assert.equal(await s.vault.get(ada, 'oidc-conditions', conditionsRef), null);
    }
    const kept = (await listTrustRules(context, ada)).map(({ rule, conditions }) => [rule.name, conditions.subject]);
    assert.deepEqual(kept, [
      ['rule', 'other'],
      ['renamed', 'job'],
    ]);
    assert.deepEqual(s.swept, []);
  });

  test('removes each record once when several nodes sweep at the same time', async () => {
    const s = await newSweep();
    const named = await s.put('named');
    await s.append({}, named);
    for (let n = 0; n < 20; n += 1) await s.put(String(n));
    s.clock.advance(2 * UNNAMED_VAULT_RECORD_SPAN_MS);
    await Promise.all([s.sweep(), s.sweep(), s.sweep()]);
    assert.equal(s.swept.length, 20);
    assert.equal(await s.vault.get(s.account, 'source-address', named), 'named');
  });
});
