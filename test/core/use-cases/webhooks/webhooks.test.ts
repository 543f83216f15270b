/** The use cases of webhooks, when several callers change the same one. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import type { TargetFault } from '../../../../core/kernel/target-fault.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  rotateWebhookSecret,
} from '../../../../core/use-cases/webhooks/webhooks.ts';
import { accepted, codeOf, codesOf, newAccount } from '../../../support/accounts.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { gate, watchLog } from '../../../support/watched-log.ts';

const WANTED = { url: 'https://receiver.example/', events: ['push'], active: true } as const;

async function started() {
  const log = watchLog();
  const checked: string[] = [];
  const outgoing = {
    check: async (url: string): Promise<TargetFault | null> => {
      checked.push(url);
      return url.includes('forbidden') ? 'address-not-public' : null;
    },
    send: () => Promise.reject(new Error('Nothing is sent here')),
  };
  const node = { ...(await startNode(log)), outgoing };
  const account = await newAccount(node, 'ada');
  const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
  const create = (url: string = WANTED.url) => createWebhook(node, origin, { ...WANTED, url }, newWebhookSecret());
  return { log, node, account, origin, checked, create };
}

/** Checks that everything the state refers to is in the vault. */
async function assertWhole({ node, account }: Awaited<ReturnType<typeof started>>): Promise<void> {
  const { state } = await node.entities.reload(accounts, account);
  assert.ok(state.status === 'open');
  for (const { urlRef, secretRef, previousSecret } of state.webhooks.values()) {
    assert.notEqual(await node.vault.get(account, 'webhook-url', urlRef), null);
    assert.notEqual(await node.vault.get(account, 'webhook-secret', secretRef), null);
    if (previousSecret !== null) {
      assert.notEqual(await node.vault.get(account, 'webhook-secret', previousSecret.ref), null);
    }
  }
}

describe('A webhook', () => {
  test('is refused before anything is stored if its URL is refused', async () => {
    const { log, node, create, origin } = await started();
    const { webhook } = accepted(await create());
    const { appends } = log.counts;
    assert.equal(codeOf(await create('https://forbidden.example/')), 'webhook-url-refused');
    const changed = await changeWebhook(node, origin, webhook.id, { url: 'https://forbidden.example/' }, 'secret');
    assert.equal(codeOf(changed), 'webhook-url-refused');
    assert.equal(log.counts.appends, appends);
    assert.equal((await listWebhooks(node, origin)).length, 1);
  });

  test('keeps its own URL if another webhook with the same URL is deleted', async () => {
    const context = await started();
    const { node, origin, create } = context;
    const [first, second] = [accepted(await create()), accepted(await create())];
    accepted(await deleteWebhook(node, origin, first.webhook.id));
    await assertWhole(context);
    assert.equal(accepted(await findWebhook(node, origin, second.webhook.id)).url, WANTED.url);
  });

  test('does not look its URL up again if the URL does not change', async () => {
    const { node, origin, checked, create } = await started();
    const { webhook } = accepted(await create());
    const changed = await changeWebhook(node, origin, webhook.id, { url: WANTED.url, active: false }, 'secret');
    assert.equal(accepted(changed).secret, null);
    assert.deepEqual(checked, [WANTED.url]);
  });

  test('stays consistent when many callers change it, and ends with the last change', async () => {
    const context = await started();
    const { node, origin, create } = context;
    const { webhook } = accepted(await create());
    const urls = Array.from({ length: 10 }, (_, n) => `https://receiver${n % 3}.example/`);
    const changes = urls.map((url) => changeWebhook(node, origin, webhook.id, { url }, newWebhookSecret()));
    const rotations = urls.map(() => rotateWebhookSecret(node, origin, webhook.id, newWebhookSecret()));
    const reads = urls.map(() => findWebhook(node, origin, webhook.id));
    const ended = await Promise.all([...changes, ...rotations, ...reads]);
    assert.deepEqual(codesOf(ended), { created: 30 });
    await assertWhole(context);
    accepted(await deleteWebhook(node, origin, webhook.id));
    assert.deepEqual(await listWebhooks(node, origin), []);
  });

  test('is gone if it is deleted while it is changed, and leaves nothing in the vault', async () => {
    const { log, node, origin, account, create } = await started();
    const { webhook } = accepted(await create());
    const put: (readonly [field: string, ref: string])[] = [];
    const vault = {
      ...node.vault,
      put: async (...args: Parameters<typeof node.vault.put>) => {
        const ref = await node.vault.put(...args);
        put.push([args[1], ref]);
        return ref;
      },
    };
    log.on.append = async () => {
      log.on.append = undefined;
      accepted(await deleteWebhook(node, origin, webhook.id));
    };
    const url = 'https://another.example/';
    const changed = await changeWebhook({ ...node, vault }, origin, webhook.id, { url }, newWebhookSecret());
    assert.equal(codeOf(changed), 'webhook-not-found');
    assert.equal(put.length, 2);
    for (const [field, ref] of put) {
      assert.equal(await node.vault.get(account, field as 'webhook-url', ref as typeof webhook.urlRef), null);
    }
  });

  test('is read from the log if another node changed it and this node has not received that yet', async () => {
    const { log, node, origin, create } = await started();
    const { webhook } = accepted(await create());
    const behind = await startNode(log, { vault: node.vault });
    accepted(await findWebhook(behind, origin, webhook.id));
    const held = gate();
    log.on.deliver = () => held.passed;
    accepted(await changeWebhook(node, origin, webhook.id, { url: 'https://another.example/' }, newWebhookSecret()));
    assert.equal(accepted(await findWebhook(behind, origin, webhook.id)).url, 'https://another.example/');
    held.open();
  });

  test('is not created for an account that is erased in between', async () => {
    const { node, origin, account, create } = await started();
    const { webhook } = accepted(await create());
    const erasing = {
      ...node,
      outgoing: {
        ...node.outgoing,
        check: async () => {
          accepted(await eraseAccount(node, CAUSE, account));
          return null;
        },
      },
    };
    const url = 'https://another.example/';
    assert.equal(codeOf(await changeWebhook(erasing, origin, webhook.id, { url }, 'secret')), 'account-not-found');
    assert.equal(codeOf(await create()), 'account-not-found');
    assert.equal(codeOf(await rotateWebhookSecret(node, origin, webhook.id, 'secret')), 'webhook-not-found');
    assert.deepEqual(await listWebhooks(node, origin), []);
  });

  test('causes an error, not a refusal, if the vault has lost its URL', async () => {
    const { node, account, origin, create } = await started();
    const { webhook } = accepted(await create());
    await node.vault.delete(account, webhook.urlRef);
    await assert.rejects(findWebhook(node, origin, webhook.id), /vault has no URL/);
    await assert.rejects(listWebhooks(node, origin), /vault has no URL/);
  });
});
