/** Signing up: who gets an account, and what is left when the process stops between any two steps. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import { vaultRef } from '../../../../core/kernel/vault-ref.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import { findAccount } from '../../../../core/use-cases/accounts/accounts.ts';
import { CLAIM_SPAN_MS } from '../../../../core/use-cases/accounts/claims.ts';
import { identifyPerson } from '../../../../core/use-cases/callers/authenticate.ts';
import { type Origin, signIn } from '../../../../core/use-cases/signing-in/sign-in.ts';
import {
  SIGN_UPS_PER_HOUR_MAX,
  SIGN_UPS_PER_HOUR_WIDE_MAX,
  type SignUpContext,
  signUp,
} from '../../../../core/use-cases/signing-in/sign-up.ts';
import { accepted, codeOf, codesOf } from '../../../support/accounts.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { startNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

const ADA = { username: 'ada', email: 'ada@example.org', password: 'correct horse battery' };
const HERE: Origin = { requestId: 'request-2', address: '192.0.2.1', userAgent: 'Browser/1.0' };

async function started() {
  const log = watchLog();
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const another = async (): Promise<SignUpContext> => {
    const node = await startNode(log, { clock, vault });
    return { ...node, signUpOpen: true };
  };
  const context = await another();
  const enter = (login = 'ada') => signIn(context, HERE, { login, password: ADA.password, knownBrowser: () => null });
  return { log, clock, vault, another, context, enter };
}

describe('A person who signs up', () => {
  test('has an account on the free plan immediately, and is signed in', async () => {
    const { log, context, vault } = await started();
    const person = accepted(await signUp(context, HERE, ADA));
    const { account } = person;
    assert.deepEqual(person, { account, username: 'ada', status: 'open', epoch: 0, secondFactor: false });
    assert.equal((await identifyPerson(context, person))?.status, 'open');
    const { state } = await context.entities.get(accounts, account);
    assert.equal(state.status === 'open' && state.plan, 'FREE');
    const events = await log.readAll(LOG_START, 100);
    const created = events.find(({ type }) => type === 'AccountCreated');
    assert.deepEqual(created?.actor, { kind: 'system', id: 'sign-up' });
    assert.equal(created.requestId, HERE.requestId);
    const address = vaultRef(String(created.sourceAddressRef));
    assert.equal(await vault.get(account, 'source-address', address), HERE.address);
    assert.equal(events.at(-1)?.type, 'SignedIn');
  });

  test('is told which of the name and the address is taken, and nothing is written', async () => {
    const { log, context } = await started();
    accepted(await signUp(context, HERE, ADA));
    const { appends } = log.counts;
    assert.equal(codeOf(await signUp(context, HERE, { ...ADA, email: 'other@example.org' })), 'username-taken');
    assert.equal(
      codeOf(await signUp(context, HERE, { ...ADA, username: 'bob', email: 'ADA@example.org' })),
      'email-taken',
    );
    assert.equal(log.counts.appends, appends);
  });

  test('gets no account where only the operator makes them', async () => {
    const { log, context } = await started();
    assert.equal(codeOf(await signUp({ ...context, signUpOpen: false }, HERE, ADA)), 'sign-up-closed');
    assert.equal(log.counts.appends, 0);
  });

  test('gets no address whose domain is the other spelling of one that is taken, nor a domain that none can have', async () => {
    const { log, context } = await started();
    const [unicode, ascii] = ['münchen.example', 'xn--mnchen-3ya.example'];
    accepted(await signUp(context, HERE, { ...ADA, email: `ada@${unicode}` }));
    accepted(await signUp(context, HERE, { ...ADA, username: 'eve', email: `eve@${ascii}` }));
    const { appends } = log.counts;
    for (const [email, code] of [
      [`ada@${ascii}`, 'email-taken'],
      [`eve@${unicode}`, 'email-taken'],
      ['bob@ü..example', 'email-invalid'],
      ['bob@xn--a', 'email-invalid'],
    ] as const) {
      assert.equal(codeOf(await signUp(context, HERE, { ...ADA, username: 'bob', email })), code, email);
    }
    assert.equal(log.counts.appends, appends);
  });

  test('races with others for the spellings of an address, and one of them gets it', async () => {
    const { another } = await started();
    const emails = ['ada@münchen.example', 'ada@xn--mnchen-3ya.example', 'ADA@MÜNCHEN.example'];
    const results = await Promise.all(
      emails.map(async (email, n) => signUp(await another(), HERE, { ...ADA, username: `ada-${n}`, email })),
    );
    assert.deepEqual(codesOf(results), { created: 1, 'email-taken': 2 });
  });

  test('races with others for a name, and one of them gets it', async () => {
    const { another } = await started();
    const nodes = await Promise.all([another(), another()]);
    const results = await Promise.all(
      nodes.map((node, n) => signUp(node, HERE, { ...ADA, email: `ada${n}@example.org` })),
    );
    assert.deepEqual(codesOf(results), { created: 1, 'username-taken': 1 });
  });
});

describe('An attacker who looks for taken names and addresses, or who makes accounts', () => {
  test('has twenty tries in an hour from one network, whether they succeed or not', async () => {
    const { context, clock } = await started();
    accepted(await signUp(context, HERE, ADA));
    for (let n = 1; n < SIGN_UPS_PER_HOUR_MAX; n += 1) {
      const wanted =
        n % 2 === 0 ? { ...ADA, username: `ada-${n}` } : { ...ADA, username: `ada-${n}`, email: `${n}@b.example` };
      assert.equal(codeOf(await signUp(context, HERE, wanted)), n % 2 === 0 ? 'email-taken' : null);
    }
    const next = { ...ADA, username: 'next', email: 'next@example.org' };
    assert.deepEqual(await signUp(context, HERE, next), { refused: { code: 'too-many-attempts', waitSeconds: 3_600 } });
    accepted(await signUp(context, { ...HERE, address: '192.0.2.2' }, next));
    clock.advance(60 * 60_000);
    assert.equal(codeOf(await signUp(context, HERE, next)), 'username-taken');
  });

  test('has a hundred tries in an hour from all networks of a /48 of IPv6', async () => {
    const { context } = await started();
    const codes: (string | null)[] = [];
    for (let n = 0; n <= SIGN_UPS_PER_HOUR_WIDE_MAX; n += 1) {
      codes.push(codeOf(await signUp(context, { ...HERE, address: `2001:db8:7:${n.toString(16)}::1` }, ADA)));
    }
    assert.deepEqual([codes[0], codes.at(-2), codes.at(-1)], [null, 'username-taken', 'too-many-attempts']);
    assert.equal(codeOf(await signUp(context, { ...HERE, address: '2001:db8:8::1' }, ADA)), 'username-taken');
  });

  test('has no try counted for a form that is filled in wrongly, which tells nothing', async () => {
    const { context } = await started();
    for (let n = 0; n < 2 * SIGN_UPS_PER_HOUR_MAX; n += 1) {
      assert.equal(codeOf(await signUp(context, HERE, { ...ADA, password: 'short' })), 'password-length');
    }
    accepted(await signUp(context, HERE, ADA));
  });
});

describe('A sign-up that is interrupted', () => {
  const points: readonly FailpointName[] = [
    'account-username-claimed',
    'account-email-claimed',
    'account-created',
    'account-username-confirmed',
  ];

  for (const dead of points) {
    test(`at ${dead} leaves a whole account, or names that are free again after ten minutes`, async () => {
      const { context, another, clock, enter } = await started();
      const failpoint = async (point: FailpointName): Promise<void> => {
        if (point === dead) throw new Error('killed');
      };
      await assert.rejects(signUp({ ...context, failpoint }, HERE, ADA), /killed/);
      const other = await another();
      if ((await findAccount(other, 'ada')) !== null) {
        accepted(await enter());
        accepted(await enter(ADA.email));
        clock.advance(CLAIM_SPAN_MS + 1);
        assert.equal(codeOf(await signUp(other, HERE, ADA)), 'username-taken');
        assert.equal(codeOf(await signUp(other, HERE, { ...ADA, username: 'bob' })), 'email-taken');
      } else {
        assert.equal(codeOf(await enter()), 'sign-in-failed');
        assert.equal(codeOf(await enter(ADA.email)), 'sign-in-failed');
        assert.equal(codeOf(await signUp(other, HERE, ADA)), 'username-taken');
        clock.advance(CLAIM_SPAN_MS + 1);
        accepted(await signUp(other, HERE, ADA));
      }
    });
  }

  test('before its sign-in is an account to sign in to', async () => {
    const { log, context, enter } = await started();
    log.on.append = ({ stream }) => {
      if (stream.startsWith('signIn-')) throw new Error('killed');
    };
    await assert.rejects(signUp(context, HERE, ADA), /killed/);
    log.on.append = undefined;
    accepted(await enter());
  });
});
