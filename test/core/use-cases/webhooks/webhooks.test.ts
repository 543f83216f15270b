/** Webhooks through their use cases, where several want to change the same one. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import type { TargetFault } from '../../../../core/ports/outgoing-requests.ts';
import { eraseAccount } from '../../../../core/use-cases/accounts/erase-account.ts';
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
  const origin = { account, cause: CAUSE };
  const create = (url: string = WANTED.url) => createWebhook(node, origin, { ...WANTED, url }, newWebhookSecret());
  return { log, node, account, origin, checked, create };
}

/** What the state names must be in the vault. */
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
  test('is refused before anything of it is stored when its URL is', async () => {
    const { log, node, account, create, origin } = await started();
    const { webhook } = accepted(await create());
    const { appends } = log.counts;
    assert.equal(codeOf(await create('https://forbidden.example/')), 'webhook-url-refused');
    const changed = await changeWebhook(node, origin, webhook.id, { url: 'https://forbidden.example/' }, 'secret');
    assert.equal(codeOf(changed), 'webhook-url-refused');
    assert.equal(log.counts.appends, appends);
    assert.equal((await listWebhooks(node, account)).length, 1);
  });

  test('of the same URL as another keeps its own when the other goes', async () => {
    const context = await started();
    const { node, origin, create } = context;
    const [first, second] = [accepted(await create()), accepted(await create())];
    accepted(await deleteWebhook(node, origin, first.webhook.id));
    await assertWhole(context);
    assert.equal(accepted(await findWebhook(node, origin.account, second.webhook.id)).url, WANTED.url);
  });

  test('whose URL does not change is not looked up again', async () => {
    const { node, origin, checked, create } = await started();
    const { webhook } = accepted(await create());
    const changed = await changeWebhook(node, origin, webhook.id, { url: WANTED.url, active: false }, 'secret');
    assert.equal(accepted(changed).secret, null);
    assert.deepEqual(checked, [WANTED.url]);
  });

  test('that many change at once stays whole, and ends as the last of them says', async () => {
    const context = await started();
    const { node, origin, account, create } = context;
    const { webhook } = accepted(await create());
    const urls = Array.from({ length: 10 }, (_, n) => `https://receiver${n % 3}.example/`);
    const changes = urls.map((url) => changeWebhook(node, origin, webhook.id, { url }, newWebhookSecret()));
    const rotations = urls.map(() => rotateWebhookSecret(node, origin, webhook.id, newWebhookSecret()));
    const reads = urls.map(() => findWebhook(node, account, webhook.id));
    const ended = await Promise.all([...changes, ...rotations, ...reads]);
    assert.deepEqual(codesOf(ended), { created: 30 });
    await assertWhole(context);
    accepted(await deleteWebhook(node, origin, webhook.id));
    assert.deepEqual(await listWebhooks(node, account), []);
  });

  test('that is deleted while it is changed is gone, and leaves nothing in the vault', async () => {
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

  test('that another node changed, and this one has not heard of yet, is read from the log', async () => {
    const { log, node, origin, account, create } = await started();
    const { webhook } = accepted(await create());
    const behind = await startNode(log, { vault: node.vault });
    accepted(await findWebhook(behind, account, webhook.id));
    const held = gate();
    log.on.deliver = () => held.passed;
    accepted(await changeWebhook(node, origin, webhook.id, { url: 'https://another.example/' }, newWebhookSecret()));
    assert.equal(accepted(await findWebhook(behind, account, webhook.id)).url, 'https://another.example/');
    held.open();
  });

  test('of an account that is erased meanwhile is none', async () => {
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
    assert.deepEqual(await listWebhooks(node, account), []);
  });

  test('whose URL is lost is a fault, not a webhook that is not there', async () => {
    const { node, account, create } = await started();
    const { webhook } = accepted(await create());
    await node.vault.delete(account, webhook.urlRef);
    await assert.rejects(findWebhook(node, account, webhook.id), /vault has no URL/);
    await assert.rejects(listWebhooks(node, account), /vault has no URL/);
  });
});
