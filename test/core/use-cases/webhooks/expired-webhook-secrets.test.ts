/** The policy removes a webhook's previous secret from the vault when it no longer signs, and not before. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import type { EventId, WebhookId } from '../../../../core/kernel/ids.ts';
import { changePlan } from '../../../../core/use-cases/accounts/accounts.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import {
  removeExpiredWebhookSecrets,
  WEBHOOK_SECRET_REMOVAL_MARGIN_MS,
} from '../../../../core/use-cases/webhooks/expired-webhook-secrets.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  WEBHOOK_SECRET_OVERLAP_MS,
} from '../../../../core/use-cases/webhooks/webhooks.ts';
import { accepted, newAccount } from '../../../support/accounts.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

/** The time from a rotation until the previous secret may be removed. */
const SPAN_MS = WEBHOOK_SECRET_OVERLAP_MS + WEBHOOK_SECRET_REMOVAL_MARGIN_MS;

async function sweeping() {
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const events = watchLog(createMemoryEventStore());
  const node = await startNode(events, { clock, vault });
  const outgoing = { check: async () => null, send: () => Promise.reject(new Error('Nothing is sent here')) };
  const context = { ...node, outgoing, marks: createMemoryPolicyMarks() };
  const account = await newAccount(node, 'ada');
  const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
  const stateOf = async (id: WebhookId) => {
    const { state } = await node.entities.reload(accounts, account);
    const webhook = state.status === 'open' ? state.webhooks.get(id) : undefined;
    assert.ok(webhook !== undefined);
    return webhook;
  };
  return {
    ...{ clock, vault, events, node, context, account, origin, stateOf },
    create: async () => {
      const wanted = { url: 'https://receiver.example/', events: ['push'], active: true } as const;
      return accepted(await createWebhook(context, origin, wanted, newWebhookSecret())).webhook.id;
    },
    rotate: async (id: WebhookId) => accepted(await rotateWebhookSecret(context, origin, id, newWebhookSecret())),
    sweep: (signal = { aborted: false }) => removeExpiredWebhookSecrets(context, signal),
    /** Returns whether the vault has the secret, and the previous one. */
    kept: async (id: WebhookId): Promise<readonly boolean[]> => {
      const { secretRef, previousSecret } = await stateOf(id);
      const refs = [secretRef, previousSecret?.ref ?? null];
      return Promise.all(
        refs.map(async (ref) => ref !== null && (await vault.get(account, 'webhook-secret', ref)) !== null),
      );
    },
  };
}

describe('A secret that was rotated out', () => {
  test('stays for its day and a margin, and is removed after that without any request', async () => {
    const s = await sweeping();
    const id = await s.create();
    await s.sweep();
    await s.rotate(id);
    s.clock.advance(SPAN_MS - 1);
    await s.sweep();
    assert.deepEqual(await s.kept(id), [true, true], 'at the limit');
    s.clock.advance(1);
    await s.sweep();
    assert.deepEqual(await s.kept(id), [true, false]);
    const { previousSecret } = await s.stateOf(id);
    assert.ok(previousSecret !== null && previousSecret.validUntil < s.clock.now(), 'no node signs with it');
    await s.sweep();
    assert.deepEqual(await s.kept(id), [true, false]);
  });

  test('is removed at its own time, for each webhook separately', async () => {
    const s = await sweeping();
    const [early, late, idle] = [await s.create(), await s.create(), await s.create()];
    await s.rotate(early);
    s.clock.advance(60_000);
    await s.rotate(late);
    s.clock.advance(SPAN_MS - 60_000);
    await s.sweep();
    assert.deepEqual([await s.kept(early), await s.kept(late), await s.kept(idle)].flat(), [
      ...[true, false],
      ...[true, true],
      ...[true, false],
    ]);
    s.clock.advance(60_000);
    await s.sweep();
    assert.deepEqual(await s.kept(late), [true, false]);
  });

  test('removes no secret in use if the webhook is rotated again, changed, deleted or erased in between', async () => {
    const s = await sweeping();
    const [twice, moved, deleted] = [await s.create(), await s.create(), await s.create()];
    for (const id of [twice, moved, deleted]) await s.rotate(id);
    s.clock.advance(SPAN_MS / 2);
    await s.rotate(twice);
    accepted(await changeWebhook(s.context, s.origin, moved, { url: 'https://another.example/' }, newWebhookSecret()));
    await s.rotate(moved);
    accepted(await deleteWebhook(s.context, s.origin, deleted));
    s.clock.advance(SPAN_MS / 2);
    await s.sweep();
    assert.deepEqual([await s.kept(twice), await s.kept(moved)].flat(), [true, true, true, true]);
    s.clock.advance(SPAN_MS / 2);
    await s.sweep();
    assert.deepEqual([await s.kept(twice), await s.kept(moved)].flat(), [true, false, true, false]);
    await s.rotate(twice);
    accepted(await eraseAccount(s.context, CAUSE, s.account));
    s.clock.advance(SPAN_MS);
    await s.sweep();
  });

  test("is found behind a long log, read once, and from the log's start if the log is another", async () => {
    const s = await sweeping();
    const id = await s.create();
    for (let n = 0; n < 120; n += 1) accepted(await changePlan(s.node, CAUSE, s.account, n % 2 === 0 ? 'FREE' : 'PRO'));
    await s.rotate(id);
    for (let n = 0; n < 120; n += 1) accepted(await changePlan(s.node, CAUSE, s.account, n % 2 === 0 ? 'FREE' : 'PRO'));
    await s.sweep();
    const stopped = await s.context.marks.read('webhook-secret-expiry');
    const head = await s.events.head();
    assert.ok(stopped !== null && stopped.position < head, 'before the rotation');
    s.clock.advance(SPAN_MS);
    await s.sweep({ aborted: true });
    assert.deepEqual(await s.kept(id), [true, true], 'a server that is stopping does not sweep');
    await s.sweep();
    assert.deepEqual(await s.kept(id), [true, false]);
    const reached = await s.context.marks.read('webhook-secret-expiry');
    assert.ok(reached !== null);
    assert.equal(reached.position, head);
    const record = { ...reached.record, eventId: s.node.ids.next<EventId>() };
    await s.context.marks.save('webhook-secret-expiry', { ...reached, record });
    await s.sweep();
    assert.deepEqual(await s.context.marks.read('webhook-secret-expiry'), reached);
  });

  test('is kept while the vault is unavailable, and removed after that', async () => {
    const s = await sweeping();
    const id = await s.create();
    await s.rotate(id);
    s.clock.advance(SPAN_MS);
    const away = { delete: () => Promise.reject(new Error('away')) };
    await assert.rejects(removeExpiredWebhookSecrets({ ...s.context, vault: away }, { aborted: false }), /away/);
    assert.deepEqual(await s.kept(id), [true, true]);
    await s.sweep();
    assert.deepEqual(await s.kept(id), [true, false]);
  });
});
