/** Authenticator apps: their enrolment, and their codes at sign-in. */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'vitest';
import { categoryOf, LOG_START } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import { MFA_TOKENS_MAX } from '../../../../core/kernel/limits.ts';
import type { VaultRef } from '../../../../core/kernel/vault-ref.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import { deleteMfaToken, listMfaTokens } from '../../../../core/use-cases/signing-in/mfa-tokens.ts';
import { activateTotp, beginTotpEnrolment, useTotpCode } from '../../../../core/use-cases/signing-in/totp.ts';
import { accepted, codeOf, codesOf, newAccount } from '../../../support/accounts.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { enrolTotp, epochOf, type MfaNode, mfaParts, owner } from '../../../support/mfa.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { codeAt } from '../../../support/totp-app.ts';

describe('An authenticator app', () => {
  let node: MfaNode;
  let other: MfaNode;
  let ada: AccountId;

  beforeEach(async () => {
    const events = createMemoryEventStore();
    const vault = createMemoryVault();
    const parts = mfaParts();
    const first = await startNode(events, { vault });
    node = { ...first, ...parts };
    other = { ...(await startNode(events, { vault, clock: first.clock })), ...parts };
    ada = await newAccount(node, 'ada');
  });

  test('is enrolled as pending and activated by a code, which ends sessions; then each sign-in takes a new code', async () => {
    const { id, seed, url } = accepted(await beginTotpEnrolment(node, owner(ada), 'Phone'));
    assert.match(url, /^otpauth:\/\/totp\/Strata:ada\?/);
    assert.deepEqual(
      (await listMfaTokens(node, ada)).map(({ name, kind, status }) => [name, kind, status]),
      [['Phone', 'totp', 'pending']],
    );
    assert.equal(await epochOf(node, ada), 0);
    assert.equal(codeOf(await useTotpCode(node, owner(ada), codeAt(seed, node.clock.now()))), 'mfa-code-wrong');
    accepted(await activateTotp(node, owner(ada), id, codeAt(seed, node.clock.now())));
    assert.equal(await epochOf(node, ada), 1);
    node.clock.advance(30_000);
    assert.deepEqual(await useTotpCode(node, owner(ada), codeAt(seed, node.clock.now())), { used: id });
    assert.equal(await epochOf(node, ada), 1);
  });

  test('is not activated by a wrong code, a code of another key, or the code of another account', async () => {
    const { id } = accepted(await beginTotpEnrolment(node, owner(ada), 'Phone'));
    const bob = await newAccount(node, 'bob');
    const theirs = accepted(await beginTotpEnrolment(node, owner(bob), 'Phone'));
    for (const code of ['000000', '', 'abcdef', codeAt(theirs.seed, node.clock.now())])
      assert.equal(codeOf(await activateTotp(node, owner(ada), id, code)), 'mfa-code-wrong', code);
    const code = codeAt(theirs.seed, node.clock.now());
    assert.equal(codeOf(await activateTotp(node, owner(ada), theirs.id, code)), 'mfa-token-not-found');
    assert.equal((await listMfaTokens(node, ada))[0]?.status, 'pending');
  });

  // The attack: a code that was read over the shoulder, or from the activation, is used once more.
  test('has no code that works twice, nor an older one that was not used', async () => {
    const { id, seed } = accepted(await beginTotpEnrolment(node, owner(ada), 'Phone'));
    const first = codeAt(seed, node.clock.now());
    const before = codeAt(seed, node.clock.now(), -1);
    accepted(await activateTotp(node, owner(ada), id, first));
    assert.equal(codeOf(await useTotpCode(node, owner(ada), first)), 'mfa-code-used');
    assert.equal(codeOf(await useTotpCode(node, owner(ada), before)), 'mfa-code-used');
    const next = codeAt(seed, node.clock.now(), 1);
    accepted(await useTotpCode(node, owner(ada), next));
    assert.equal(codeOf(await useTotpCode(other, owner(ada), next)), 'mfa-code-used');
  });

  // The attack: one stolen code is sent 20 times at the same time, to two nodes.
  test('has codes that work once when they race on two nodes', async () => {
    const { seed } = await enrolTotp(node, ada);
    const code = codeAt(seed, node.clock.now());
    const tries = Array.from({ length: 20 }, (_, n) => useTotpCode(n % 2 === 0 ? node : other, owner(ada), code));
    assert.deepEqual(codesOf(await Promise.all(tries)), { created: 1, 'mfa-code-used': 19 });
  });

  // The attack: a code of the attacker's own account, or of an app that was deleted.
  test('has codes for its own account only, and only while it is enrolled', async () => {
    const bob = await newAccount(node, 'bob');
    const mine = await enrolTotp(node, ada);
    const theirs = await enrolTotp(node, bob);
    const code = () => codeAt(theirs.seed, node.clock.now());
    assert.equal(codeOf(await useTotpCode(node, owner(ada), code())), 'mfa-code-wrong');
    accepted(await deleteMfaToken(node, owner(ada), mine.id));
    assert.equal(codeOf(await useTotpCode(node, owner(ada), codeAt(mine.seed, node.clock.now()))), 'mfa-code-wrong');
  });

  test('is one of several: a code of any active one works', async () => {
    const apps = [await enrolTotp(node, ada, 'Phone'), await enrolTotp(node, ada, 'Tablet')];
    for (const { id, seed } of apps)
      assert.deepEqual(await useTotpCode(node, owner(ada), codeAt(seed, node.clock.now())), { used: id });
  });

  test('has its key in the vault and in no event, and a refused enrolment leaves no key', async () => {
    const puts: VaultRef[] = [];
    const put: typeof node.vault.put = async (...args) => {
      const ref = await node.vault.put(...args);
      puts.push(ref);
      return ref;
    };
    const watched = { ...node, vault: { ...node.vault, put } };
    const seeds: string[] = [];
    for (let n = 0; n < MFA_TOKENS_MAX; n += 1)
      seeds.push(accepted(await beginTotpEnrolment(watched, owner(ada), `app ${n}`)).seed);
    assert.equal(codeOf(await beginTotpEnrolment(watched, owner(ada), 'sixth')), 'mfa-token-limit-reached');
    const kept = await Promise.all(puts.map((ref) => node.vault.get(ada, 'totp-seed', ref)));
    assert.deepEqual(kept, [...seeds, null]);
    const events = (await node.events.readAll(LOG_START, 1_000)).filter(
      ({ stream }) => categoryOf(stream) === 'account',
    );
    for (const seed of seeds) assert.ok(!JSON.stringify(events.map(({ data }) => data)).includes(seed));
  });

  // The attack: concurrent requests for a sixth token.
  test('is one of at most five, also when 20 enrolments race on two nodes', async () => {
    const tries = Array.from({ length: 20 }, (_, n) =>
      beginTotpEnrolment(n % 2 === 0 ? node : other, owner(ada), `app ${n}`),
    );
    assert.deepEqual(codesOf(await Promise.all(tries)), { created: 5, 'mfa-token-limit-reached': 15 });
  });

  test('is deleted with its key, and cannot be enrolled for an erased account', async () => {
    const { id } = await enrolTotp(node, ada);
    const [token] = await listMfaTokens(node, ada);
    assert.ok(token?.kind === 'totp');
    accepted(await deleteMfaToken(node, owner(ada), id));
    assert.equal(await node.vault.get(ada, 'totp-seed', token.seedRef), null);
    assert.equal(await epochOf(node, ada), 2);
    accepted(await eraseAccount(node, CAUSE, ada));
    assert.equal(codeOf(await beginTotpEnrolment(node, owner(ada), 'late')), 'account-not-found');
  });

  test('is enrolled wholly or not at all when the process dies at any step', async () => {
    const died = async (point: string, at: string): Promise<void> => {
      if (point === at) throw new Error(`died at ${at}`);
    };
    const dying = (at: string): MfaNode => ({ ...node, failpoint: (point) => died(point, at) });
    await assert.rejects(beginTotpEnrolment(dying('mfa-seed-stored'), owner(ada), 'Phone'), /died/);
    assert.deepEqual(await listMfaTokens(node, ada), []);
    await assert.rejects(beginTotpEnrolment(dying('mfa-enrolment-begun'), owner(ada), 'Phone'), /died/);
    const [pending] = await listMfaTokens(node, ada);
    assert.ok(pending?.kind === 'totp' && pending.status === 'pending');
    const seed = await node.vault.get(ada, 'totp-seed', pending.seedRef);
    assert.ok(seed !== null);
    const code = codeAt(seed, node.clock.now());
    await assert.rejects(activateTotp(dying('mfa-token-activated'), owner(ada), pending.id, code), /died/);
    assert.equal((await listMfaTokens(node, ada))[0]?.status, 'active');
    assert.equal(codeOf(await useTotpCode(node, owner(ada), code)), 'mfa-code-used');
    await assert.rejects(deleteMfaToken(dying('mfa-tokens-removed'), owner(ada), pending.id), /died/);
    assert.deepEqual(await listMfaTokens(node, ada), []);
  });
});
