/** `log verify --references` and the vault's records of webhooks. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createMemoryEventStore } from '../../support/memory/event-store.ts';
import { newWebhookSecret } from '../../../adapters/node/webhook-secret.ts';
import { createVaultCheck } from '../../../apps/admin/verify-vault.ts';
import { ALL_REPOSITORIES } from '../../../core/access-token/repository-selection.ts';
import { LOG_START } from '../../../core/kernel/envelope.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  rotateWebhookSecret,
} from '../../../core/use-cases/webhooks/webhooks.ts';
import { accepted, newAccount } from '../../support/accounts.ts';
import { CAUSE, startNode } from '../../support/node.ts';

describe("The vault's records of webhooks", () => {
  test('are each reported if a webhook needs them now and they are missing', async () => {
    const log = createMemoryEventStore();
    const outgoing = { check: async () => null, send: () => Promise.reject(new Error('Nothing is sent here')) };
    const node = { ...(await startNode(log)), outgoing };
    const account = await newAccount(node, 'ada');
    const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
    const wanted = { url: 'https://receiver.example/', events: ['push'], active: true } as const;
    const create = async () => accepted(await createWebhook(node, origin, wanted, newWebhookSecret())).webhook;
    const [gone, moved, rotated] = [await create(), await create(), await create()];
    accepted(await deleteWebhook(node, origin, gone.id));
    const url = 'https://another.example/';
    const { webhook } = accepted(
      await changeWebhook(node, origin, moved.id, { url, active: false }, newWebhookSecret()),
    );
    const after = accepted(await rotateWebhookSecret(node, origin, rotated.id, newWebhookSecret())).webhook;

    const faults = async (): Promise<readonly string[]> => {
      const found: string[] = [];
      const check = createVaultCheck(node.vault, (text) => found.push(text));
      for (const event of await log.readAll(LOG_START, 1_000)) check.add(event);
      await check.finish();
      return found;
    };
    assert.deepEqual(await faults(), []);
    await node.vault.delete(account, webhook.urlRef);
    await node.vault.delete(account, after.secretRef);
    assert.deepEqual(await faults(), [
      `The vault lacks the webhook-url of webhook ${moved.id} of account ${account}`,
      `The vault lacks the webhook-secret of webhook ${rotated.id} of account ${account}`,
    ]);
  });
});
