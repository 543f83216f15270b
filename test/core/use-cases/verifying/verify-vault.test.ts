/** `log verify --references`, and the vault's records of webhooks and of MFA tokens. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { ALL_REPOSITORIES } from '../../../../core/access-token/repository-selection.ts';
import { vaultRefOf } from '../../../../core/account/mfa/state.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../../core/ports/event-store.ts';
import type { Vault } from '../../../../core/ports/vault.ts';
import { changeBucket, createBucket, deleteBucket } from '../../../../core/use-cases/buckets/buckets.ts';
import { deleteMfaToken, listMfaTokens, resetMfa } from '../../../../core/use-cases/signing-in/mfa-tokens.ts';
import { beginPasskeyEnrolment } from '../../../../core/use-cases/signing-in/passkeys.ts';
import { changeTrustRule, createTrustRule, deleteTrustRule } from '../../../../core/use-cases/tokens/trust-rules.ts';
import { createVaultCheck } from '../../../../core/use-cases/verifying/verify-vault.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  rotateWebhookSecret,
} from '../../../../core/use-cases/webhooks/webhooks.ts';
import { accepted, newAccount } from '../../../support/accounts.ts';
import { ROLE_SETTINGS } from '../../../support/api-fixture.ts';
import { seesDeletions } from '../../../support/deletions.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { enrolPasskey, enrolTotp, mfaParts, owner } from '../../../support/mfa.ts';
import { CAUSE, startNode } from '../../../support/node.ts';

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

    assert.deepEqual(await faultsOf(node.vault, log), []);
    await node.vault.delete(account, webhook.urlRef);
    await node.vault.delete(account, after.secretRef);
    assert.deepEqual(await faultsOf(node.vault, log), [
      `The vault lacks the webhook-url of webhook ${moved.id} of account ${account}`,
      `The vault lacks the webhook-secret of webhook ${rotated.id} of account ${account}`,
    ]);
  });
});

describe("The vault's records of storage buckets", () => {
  test('are each reported if a bucket needs them now and they are missing', async () => {
    const log = createMemoryEventStore();
    const node = { ...(await startNode(log)), outgoing: { checkEndpoint: async () => null } };
    const account = await newAccount(node, 'ada');
    const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
    const create = async (name: string) =>
      accepted(await createBucket(node, origin, { name, isDefault: false, settings: ROLE_SETTINGS })).bucket.id;
    const [gone, changed] = [await create('gone'), await create('changed')];
    accepted(await deleteBucket(seesDeletions(node), origin, gone));
    const settings = { keyPrefix: 'new', roleArn: 'arn:aws:iam::123456789012:role/other' };
    const { bucket } = accepted(await changeBucket(seesDeletions(node), origin, changed, { settings }));

    assert.deepEqual(await faultsOf(node.vault, log), []);
    await node.vault.delete(account, bucket.placeRef);
    await node.vault.delete(account, bucket.accessRef);
    assert.deepEqual(await faultsOf(node.vault, log), [
      `The vault lacks the bucket-place of storage bucket ${changed} of account ${account}`,
      `The vault lacks the bucket-access of storage bucket ${changed} of account ${account}`,
    ]);
  });
});

describe("The vault's records of trust rules", () => {
  test('are each reported if a rule needs them now and they are missing', async () => {
    const log = createMemoryEventStore();
    const node = { ...(await startNode(log)), outgoing: { check: async () => null } };
    const account = await newAccount(node, 'ada');
    const origin = {
      account,
      cause: CAUSE,
      guarding: async () => ({ guards: [] }),
      maker: { grants: ['ALL'], selection: ALL_REPOSITORIES },
    } as const;
    const create = async () =>
      accepted(
        await createTrustRule(node, origin, {
          ...{ name: 'rule', issuer: 'https://issuer.example', subject: 'job', claims: {} },
          ...{ grants: ['GIT_HTTP_READ'], scope: 'ALL_REPO', repositoryIds: [] },
        }),
      ).rule;
    const [gone, changed, renamed] = [await create(), await create(), await create()];
    accepted(await deleteTrustRule(node, origin, gone.id));
    const after = accepted(await changeTrustRule(node, origin, changed.id, { subject: 'other' })).rule;
    accepted(await changeTrustRule(node, origin, renamed.id, { name: 'renamed' }));
    assert.deepEqual(await faultsOf(node.vault, log), []);
    await node.vault.delete(account, after.conditionsRef);
    await node.vault.delete(account, renamed.conditionsRef);
    assert.deepEqual(
      await faultsOf(node.vault, log),
      [changed, renamed].map(
        ({ id }) => `The vault lacks the oidc-conditions of trust rule ${id} of account ${account}`,
      ),
    );
  });
});

describe("The vault's records of MFA tokens", () => {
  test('are each reported if a token needs them and they are missing', async () => {
    const log = createMemoryEventStore();
    const node = { ...(await startNode(log)), ...mfaParts() };
    const account = await newAccount(node, 'ada');
    const gone = await enrolTotp(node, account, 'gone');
    accepted(await deleteMfaToken(node, owner(account), gone.id));
    await enrolTotp(node, account);
    await enrolPasskey(node, account);
    accepted(await beginPasskeyEnrolment(node, owner(account), 'pending'));
    assert.deepEqual(await faultsOf(node.vault, log), []);
    for (const token of await listMfaTokens(node, account)) {
      const ref = vaultRefOf(token);
      if (ref !== null) await node.vault.delete(account, ref);
    }
    const [app, key] = await listMfaTokens(node, account);
    assert.deepEqual(await faultsOf(node.vault, log), [
      `The vault lacks the totp-seed of MFA token ${app?.id} of account ${account}`,
      `The vault lacks the passkey of MFA token ${key?.id} of account ${account}`,
    ]);
    accepted(await resetMfa(node, owner(account)));
    assert.deepEqual(await faultsOf(node.vault, log), []);
  });
});

async function faultsOf(vault: Vault, log: Pick<EventStore, 'readAll'>): Promise<readonly string[]> {
  const found: string[] = [];
  const check = createVaultCheck(vault, (text) => found.push(text));
  for (const event of await log.readAll(LOG_START, 1_000)) check.add(event);
  await check.finish(async () => undefined);
  return found;
}
