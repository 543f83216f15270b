/** Passkeys: their enrolment, and their signatures at sign-in. */
import assert from 'node:assert/strict';
import { beforeEach, describe, test } from 'vitest';
import { categoryOf, LOG_START } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import { PASSKEY_CHALLENGE_SPAN_MS } from '../../../../core/kernel/limits.ts';
import { deleteMfaToken, listMfaTokens } from '../../../../core/use-cases/signing-in/mfa-tokens.ts';
import {
  activatePasskey,
  beginPasskeyEnrolment,
  promptForNewPasskey,
  promptForPasskey,
  usePasskey,
} from '../../../../core/use-cases/signing-in/passkeys.ts';
import { accepted, codeOf, codesOf, newAccount } from '../../../support/accounts.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { enrolPasskey, epochOf, type MfaNode, mfaParts, ORIGIN, owner } from '../../../support/mfa.ts';
import { startNode } from '../../../support/node.ts';
import { createSoftwareAuthenticator } from '../../../support/software-authenticator.ts';

describe('A passkey', () => {
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

  async function prompted(account: AccountId = ada): Promise<JsonObject> {
    const prompt = await promptForPasskey(node, account);
    assert.ok(prompt !== null);
    return prompt.options;
  }

  const typesOf = async (): Promise<readonly string[]> =>
    (await node.events.readAll(LOG_START, 1_000))
      .filter(({ stream }) => categoryOf(stream) === 'account')
      .map(({ type }) => type);

  test('is enrolled as pending and activated by an authenticator, which ends sessions; then it signs people in', async () => {
    assert.equal(await promptForPasskey(node, ada), null);
    const { id, authenticator } = await enrolPasskey(node, ada, 'Blue key');
    const [token] = await listMfaTokens(node, ada);
    assert.deepEqual([token?.name, token?.kind, token?.status], ['Blue key', 'passkey', 'active']);
    assert.equal(await epochOf(node, ada), 1);
    const answer = authenticator.get(await prompted());
    assert.deepEqual(await usePasskey(node, owner(ada), answer), { used: id });
    assert.equal(await epochOf(node, ada), 1);
  });

  // The attack: an answer that was seen once is sent again, to this node or another, or 20 times at the same time.
  test('has answers that work once, also when they race on two nodes', async () => {
    // Without a counter only the challenge tells a second use from the first.
    const uncounted = createSoftwareAuthenticator({ origin: ORIGIN, counts: false });
    await enrolPasskey(node, ada, 'Key', uncounted);
    const answer = uncounted.get(await prompted());
    const tries = Array.from({ length: 20 }, (_, n) => usePasskey(n % 2 === 0 ? node : other, owner(ada), answer));
    assert.deepEqual(codesOf(await Promise.all(tries)), { created: 1, 'mfa-passkey-challenge-over': 19 });
    assert.equal(codeOf(await usePasskey(other, owner(ada), answer)), 'mfa-passkey-challenge-over');
  });

  test('is answered within the time of its challenge, and not after it', async () => {
    const { authenticator } = await enrolPasskey(node, ada);
    const [early, late] = [authenticator.get(await prompted()), authenticator.get(await prompted())];
    node.clock.advance(PASSKEY_CHALLENGE_SPAN_MS - 1);
    accepted(await usePasskey(node, owner(ada), early));
    node.clock.advance(1);
    assert.equal(codeOf(await usePasskey(node, owner(ada), late)), 'mfa-passkey-challenge-over');
  });

  // The attack: a challenge that was never given, or given for another account or another form.
  test('answers only challenges of its own account and of the form that it is sent with', async () => {
    const { authenticator } = await enrolPasskey(node, ada);
    const bob = await newAccount(node, 'bob');
    const theirs = await enrolPasskey(node, bob);
    const options = await prompted();
    const invented = authenticator.get({ ...options, challenge: 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA' });
    assert.equal(codeOf(await usePasskey(node, owner(ada), invented)), 'mfa-passkey-challenge-over');
    const { challenge } = await prompted(bob);
    const foreign = authenticator.get({ ...options, challenge: challenge ?? '' });
    assert.equal(codeOf(await usePasskey(node, owner(ada), foreign)), 'mfa-passkey-challenge-over');
    const { id } = accepted(await beginPasskeyEnrolment(node, owner(ada), 'Second'));
    const enrolment = accepted(await promptForNewPasskey(node, ada, id)).options;
    const crossed = authenticator.get({ ...options, challenge: enrolment['challenge'] ?? '' });
    assert.equal(codeOf(await usePasskey(node, owner(ada), crossed)), 'mfa-passkey-challenge-over');
    const signedIn = theirs.authenticator.create({ ...enrolment, challenge: options['challenge'] ?? '' });
    assert.equal(codeOf(await activatePasskey(node, owner(ada), id, signedIn)), 'mfa-passkey-challenge-over');
  });

  // The attack: who knows ada's password signs in to her account with a passkey of their own.
  test('signs in to its own account only', async () => {
    const { authenticator } = await enrolPasskey(node, ada);
    const bob = await newAccount(node, 'bob');
    const theirs = await enrolPasskey(node, bob);
    const own = theirs.authenticator.credentialIds.map((id) => ({ id }));
    const foreign = theirs.authenticator.get({ ...(await prompted()), allowCredentials: own });
    assert.equal(codeOf(await usePasskey(node, owner(ada), foreign)), 'mfa-passkey-refused');
    const claiming = authenticator.get(await prompted(), { userHandle: Buffer.from(bob).toString('base64url') });
    assert.equal(codeOf(await usePasskey(node, owner(ada), claiming)), 'mfa-passkey-refused');
    const wrongOrigin = authenticator.get(await prompted(), { origin: 'http://localhost:8081' });
    assert.equal(codeOf(await usePasskey(node, owner(ada), wrongOrigin)), 'mfa-passkey-refused');
    for (const junk of ['', '{}', 'null', 'x'.repeat(100_000)])
      assert.equal(codeOf(await usePasskey(node, owner(ada), junk)), 'mfa-passkey-refused');
  });

  // The attack: a passkey was copied; the copy and the original both sign in.
  test('that was copied is refused where its counter went back, and the account says so once', async () => {
    const { authenticator } = await enrolPasskey(node, ada);
    const copy = authenticator.clone();
    accepted(await usePasskey(node, owner(ada), authenticator.get(await prompted())));
    for (let n = 0; n < 3; n += 1) {
      const answer = copy.get(await prompted(), { signCount: 2 });
      assert.equal(codeOf(await usePasskey(node, owner(ada), answer)), 'mfa-passkey-counter-regressed');
    }
    assert.equal((await typesOf()).filter((type) => type === 'PasskeyCounterRegressed').length, 1);
    const [token] = await listMfaTokens(node, ada);
    assert.ok(token?.kind === 'passkey' && token.status === 'active' && token.regressedAt !== null);
    accepted(await usePasskey(node, owner(ada), authenticator.get(await prompted())));
  });

  // The attack: a forged signature with a low counter, to have the owner's passkey flagged.
  test('is not flagged by a signature that is not its own', async () => {
    const { authenticator } = await enrolPasskey(node, ada);
    const bob = await newAccount(node, 'bob');
    const theirs = await enrolPasskey(node, bob, 'Key', authenticator.clone());
    const [, forger = ''] = theirs.authenticator.credentialIds;
    const options = await prompted();
    const forged = theirs.authenticator.get(options, { signCount: 0, signWith: forger });
    assert.equal(codeOf(await usePasskey(node, owner(ada), forged)), 'mfa-passkey-refused');
    assert.ok(!(await typesOf()).includes('PasskeyCounterRegressed'));
  });

  test('is enrolled once: an authenticator is not asked for a known one, and a known one is refused', async () => {
    const { authenticator } = await enrolPasskey(node, ada);
    const { id } = accepted(await beginPasskeyEnrolment(node, owner(ada), 'Again'));
    const { options } = accepted(await promptForNewPasskey(node, ada, id));
    assert.deepEqual(options['excludeCredentials'], [{ id: authenticator.credentialIds[0], type: 'public-key' }]);
    assert.throws(() => authenticator.create(options), /InvalidState/);
    const answer = authenticator.create(
      { ...options, excludeCredentials: [] },
      { reuse: authenticator.credentialIds[0] },
    );
    assert.equal(codeOf(await activatePasskey(node, owner(ada), id, answer)), 'mfa-passkey-known');
  });

  test('has its id and key in the vault and in no event, and both go when it is deleted', async () => {
    const { id, authenticator } = await enrolPasskey(node, ada);
    const [token] = await listMfaTokens(node, ada);
    assert.ok(token?.kind === 'passkey' && token.status === 'active');
    const record = await node.vault.get(ada, 'passkey', token.passkeyRef);
    assert.ok(record?.includes(authenticator.credentialIds[0] ?? 'none'));
    const events = JSON.stringify((await node.events.readAll(LOG_START, 1_000)).map(({ data }) => data));
    assert.ok(!events.includes(authenticator.credentialIds[0] ?? ''));
    const answer = authenticator.get(await prompted());
    accepted(await deleteMfaToken(node, owner(ada), id));
    assert.equal(await node.vault.get(ada, 'passkey', token.passkeyRef), null);
    assert.equal(codeOf(await usePasskey(node, owner(ada), answer)), 'mfa-passkey-refused');
  });

  test('is enrolled wholly or not at all when the process dies at any step', async () => {
    const dying = (at: string): MfaNode => ({
      ...node,
      failpoint: async (point) => {
        if (point === at) throw new Error(`died at ${at}`);
      },
    });
    await assert.rejects(beginPasskeyEnrolment(dying('mfa-enrolment-begun'), owner(ada), 'Key'), /died/);
    const [pending] = await listMfaTokens(node, ada);
    assert.ok(pending !== undefined);
    const { id } = pending;
    const authenticator = createSoftwareAuthenticator({ origin: ORIGIN });
    for (const at of ['mfa-challenge-taken', 'mfa-passkey-stored']) {
      const { options } = accepted(await promptForNewPasskey(node, ada, id));
      const answer = authenticator.create(options);
      await assert.rejects(activatePasskey(dying(at), owner(ada), id, answer), /died/);
      assert.equal((await listMfaTokens(node, ada))[0]?.status, 'pending', at);
      assert.equal(codeOf(await activatePasskey(node, owner(ada), id, answer)), 'mfa-passkey-challenge-over', at);
    }
    const { options } = accepted(await promptForNewPasskey(node, ada, id));
    const answer = authenticator.create(options);
    await assert.rejects(activatePasskey(dying('mfa-token-activated'), owner(ada), id, answer), /died/);
    assert.equal((await listMfaTokens(node, ada))[0]?.status, 'active');
    accepted(await usePasskey(node, owner(ada), authenticator.get(await prompted())));
  });
});
