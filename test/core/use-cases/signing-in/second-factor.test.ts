/** The second step of a sign-in: who gets in, what is counted, and what the log keeps. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { changePlan } from '../../../../core/use-cases/accounts/accounts.ts';
import {
  SIGN_IN_FAILURES_PAIR_MAX,
  SIGN_IN_FAILURES_SPAN_MS,
} from '../../../../core/use-cases/callers/password-guesses.ts';
import { resetMfa } from '../../../../core/use-cases/signing-in/mfa-tokens.ts';
import { promptForPasskey } from '../../../../core/use-cases/signing-in/passkeys.ts';
import { giveSecondFactor, type SecondFactor } from '../../../../core/use-cases/signing-in/second-factor.ts';
import { type Origin, signIn } from '../../../../core/use-cases/signing-in/sign-in.ts';
import { accepted, codeOf, codesOf, newAccount } from '../../../support/accounts.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryRateLimits } from '../../../support/memory/rate-limits.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { enrolPasskey, enrolTotp, type MfaNode, mfaParts, owner } from '../../../support/mfa.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { codeAt } from '../../../support/totp-app.ts';

const HERE: Origin = { requestId: 'request-2', address: '192.0.2.1', userAgent: 'Browser/1.0' };
const WRONG: SecondFactor = { kind: 'totp', code: '000000' };

async function started() {
  const clock = createTestClock();
  const [events, vault, rateLimits, parts] = [
    createMemoryEventStore(),
    createMemoryVault(clock.now),
    createMemoryRateLimits(clock),
    mfaParts(),
  ];
  const another = async () => ({ ...(await startNode(events, { clock, vault, rateLimits })), ...parts });
  const node: MfaNode & Awaited<ReturnType<typeof another>> = await another();
  const account = await newAccount(node, 'ada');
  const { seed } = await enrolTotp(node, account);
  const { authenticator } = await enrolPasskey(node, account);
  const password = { login: 'ada', password: 'correct horse battery', knownBrowser: () => null };
  const { epoch, secondFactor } = accepted(await signIn(node, HERE, password));
  assert.equal(secondFactor, true);
  const give = (
    factor: SecondFactor,
    more: {
      node?: (MfaNode & Awaited<ReturnType<typeof another>>) | undefined;
      origin?: Origin;
      browser?: string | null;
    } = {},
  ) =>
    giveSecondFactor(more.node ?? node, more.origin ?? HERE, {
      ...{ account, epoch, factor, browser: more.browser ?? null },
    });
  const code = (later = 0): SecondFactor => ({ kind: 'totp', code: codeAt(seed, clock.now(), later) });
  const passkey = async (): Promise<SecondFactor> => {
    const prompt = await promptForPasskey(node, account);
    assert.ok(prompt !== null);
    return { kind: 'passkey', answer: authenticator.get(prompt.options) };
  };
  const signInEvents = async () => {
    await node.background.settled();
    return (await events.readAll(LOG_START, 1_000)).filter(({ stream }) => stream.startsWith('signIn-'));
  };
  return { node, another, clock, account, epoch, give, code, passkey, signInEvents };
}

describe('A second factor', () => {
  test('ends a sign-in, whichever it is, and the log then has one sign-in with both factors', async () => {
    const { give, code, passkey, account, epoch, signInEvents } = await started();
    assert.deepEqual(await signInEvents(), []);
    const person = { account, username: 'ada', status: 'open', epoch, secondFactor: true };
    assert.deepEqual(await give(code()), person);
    assert.deepEqual(await give(await passkey()), person);
    const logged = await signInEvents();
    assert.deepEqual(
      logged.map(({ type, data }) => [type, data['factors']]),
      [
        ['SignedIn', ['password', 'totp']],
        ['SignedIn', ['password', 'passkey']],
      ],
    );
    assert.ok(logged.every(({ sourceAddressRef }) => sourceAddressRef !== null));
  });

  test('that is wrong leaves an event that says which it was', async () => {
    const { give, passkey, signInEvents } = await started();
    assert.equal(codeOf(await give(WRONG)), 'mfa-code-wrong');
    const answer = await passkey();
    accepted(await give(answer));
    assert.equal(codeOf(await give(answer)), 'mfa-passkey-challenge-over');
    const failed = (await signInEvents()).filter(({ type }) => type === 'SignInFailed');
    assert.deepEqual(
      failed.map(({ data }) => [data['factor'], data['reason']]),
      [
        ['totp', 'mfa-code-wrong'],
        ['passkey', 'mfa-passkey-challenge-over'],
      ],
    );
  });

  // The attack: who knows the password guesses codes, from many connections, on two nodes.
  test('can be guessed as often as the limit allows for an account and a network, on all nodes together', async () => {
    const { give, code, another, clock } = await started();
    const nodes = [await another(), await another()];
    const tries = Array.from({ length: 3 * SIGN_IN_FAILURES_PAIR_MAX }, (_, n) => give(WRONG, { node: nodes[n % 2] }));
    assert.deepEqual(codesOf(await Promise.all(tries)), {
      'mfa-code-wrong': SIGN_IN_FAILURES_PAIR_MAX,
      'too-many-attempts': 2 * SIGN_IN_FAILURES_PAIR_MAX,
    });
    assert.equal(codeOf(await give(code())), 'too-many-attempts');
    clock.advance(SIGN_IN_FAILURES_SPAN_MS);
    accepted(await give(code()));
  });

  test('that is right does not count, and a browser that its owner used before counts apart', async () => {
    const { give, code, clock } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_PAIR_MAX + 2; n += 1) {
      accepted(await give(code()));
      clock.advance(30_000);
    }
    for (let n = 0; n < SIGN_IN_FAILURES_PAIR_MAX; n += 1) await give(WRONG);
    assert.equal(codeOf(await give(code())), 'too-many-attempts');
    accepted(await give(code(), { browser: 'known' }));
  });

  // The attack: a sign-in that was begun before the tokens, the password or the account changed is ended after it.
  test('does not end a sign-in that began before something ended the sessions of the account', async () => {
    const { give, code, node, account } = await started();
    accepted(await changePlan(node, CAUSE, account, 'FREE'));
    accepted(await give(code()));
    accepted(await resetMfa(node, owner(account)));
    assert.equal(codeOf(await give(code(1))), 'session-no-longer-valid');
  });
});
