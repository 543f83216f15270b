/** Signing in: who gets in, what is counted, and what the log keeps. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../../core/kernel/json.ts';
import { EMAIL_LENGTH_MAX, PASSWORD_LENGTH_MAX, USER_AGENT_LENGTH_MAX } from '../../../../core/kernel/limits.ts';
import { type VaultRef, vaultRef } from '../../../../core/kernel/vault-ref.ts';
import { type PasswordHasher, PasswordHasherError, type PasswordTurn } from '../../../../core/ports/password-hasher.ts';
import { createAccount } from '../../../../core/use-cases/accounts/accounts.ts';
import {
  SIGN_IN_FAILURES_BROWSER_MAX,
  SIGN_IN_FAILURES_LOGIN_MAX,
  SIGN_IN_FAILURES_NETWORK_MAX,
  SIGN_IN_FAILURES_PAIR_MAX,
  SIGN_IN_FAILURES_SPAN_MS,
  SIGN_IN_FAILURES_WIDE_MAX,
} from '../../../../core/use-cases/callers/password-guesses.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import { type Origin, type SignInAttempt, signIn } from '../../../../core/use-cases/signing-in/sign-in.ts';
import { accepted, codeOf, EACH_SPELLING_ITS_OWN, newAccount } from '../../../support/accounts.ts';
import { createMemoryRateLimits } from '../../../support/memory/rate-limits.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode, type TestNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

const PASSWORD = 'correct horse battery';
const HERE: Origin = { requestId: 'request-2', address: '192.0.2.1', userAgent: 'Browser/1.0' };

function refIn(data: JsonObject | undefined): VaultRef {
  const ref = data?.['user_agent_ref'];
  assert.ok(typeof ref === 'string');
  return vaultRef(ref);
}

async function started() {
  const log = watchLog();
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const rateLimits = createMemoryRateLimits(clock);
  const verified: (string | null)[] = [];
  const turns: PasswordTurn[] = [];
  const another = async (): Promise<TestNode> => {
    const node = await startNode(log, { clock, vault, rateLimits });
    const verify: PasswordHasher['verify'] = async (password, hash, turn) => {
      verified.push(hash);
      turns.push(turn);
      return node.passwords.verify(password, hash, turn);
    };
    return { ...node, passwords: { ...node.passwords, verify } };
  };
  const node = await another();
  const account = await newAccount(node, 'ada');
  const attempt = (more: Partial<SignInAttempt> = {}, origin: Partial<Origin> = {}) =>
    signIn(node, { ...HERE, ...origin }, { login: 'ada', password: PASSWORD, knownBrowser: () => null, ...more });
  const wrong = (more: Partial<SignInAttempt> = {}, origin: Partial<Origin> = {}) =>
    attempt({ password: 'wrong horse battery', ...more }, origin);
  const signInEvents = async () => {
    await node.background.settled();
    return (await log.readAll(LOG_START, 1_000)).filter(({ stream }) => stream.startsWith('signIn-'));
  };
  return { log, clock, vault, node, another, account, attempt, wrong, verified, turns, signInEvents };
}

describe('A person', () => {
  test('signs in by username or by email address, in any case and with blanks around it', async () => {
    const { attempt, account } = await started();
    for (const login of ['ada', 'ADA', ' ada ', 'ada@example.org', 'Ada@EXAMPLE.org']) {
      const person = { account, username: 'ada', status: 'open', epoch: 0, secondFactor: false };
      assert.deepEqual(await attempt({ login }), person, login);
    }
  });

  test('signs in by an address of an international domain in either spelling of it', async () => {
    const { node, attempt } = await started();
    for (const [username, domain] of [
      ['ascii', 'xn--mnchen-3ya.example'],
      ['unicode', 'münchen.example'],
    ] as const) {
      const wanted = { username, email: `${username}@${domain}`, password: PASSWORD, plan: 'FREE' } as const;
      accepted(await createAccount(node, CAUSE, wanted));
      for (const typed of ['münchen.example', 'MÜNCHEN.EXAMPLE', 'xn--mnchen-3ya.example']) {
        assert.equal(accepted(await attempt({ login: `${username}@${typed}` })).username, username, typed);
      }
    }
  });

  test('signs in as before where an older version took the spellings of a domain for two addresses', async () => {
    const { node, attempt } = await started();
    const older = { ...node, spellDomain: EACH_SPELLING_ITS_OWN };
    for (const [username, domain] of [
      ['ada-1', 'münchen.example'],
      ['ada-2', 'xn--mnchen-3ya.example'],
    ] as const) {
      const wanted = { username, email: `ada@${domain}`, password: PASSWORD, plan: 'FREE' } as const;
      accepted(await createAccount(older, CAUSE, wanted));
      assert.equal(accepted(await attempt({ login: `ada@${domain}` })).username, username);
      assert.equal(accepted(await attempt({ login: 'ada@münchen.example' })).username, 'ada-1');
    }
    assert.equal(accepted(await attempt({ login: 'ada@xn--mnchen-3ya.example' })).username, 'ada-2');
  });

  test('leaves an event with the address and the browser, which only the vault can read', async () => {
    const { attempt, vault, account, signInEvents } = await started();
    accepted(await attempt());
    const [event, ...more] = await signInEvents();
    assert.ok(event !== undefined && more.length === 0);
    const { stream, type, isRecord, accountId, actor, requestId, sourceAddressRef, data } = event;
    assert.equal(stream, `signIn-${account}-20261121`);
    assert.deepEqual([type, isRecord, accountId, requestId], ['SignedIn', false, account, 'request-2']);
    assert.deepEqual(actor, { kind: 'user', id: account });
    assert.deepEqual(data['factors'], ['password']);
    assert.equal(await vault.get(account, 'source-address', vaultRef(String(sourceAddressRef))), HERE.address);
    assert.equal(await vault.get(account, 'user-agent', refIn(data)), HERE.userAgent);
  });

  test('leaves an event of a wrong password too, which names nobody as its actor', async () => {
    const { wrong, account, signInEvents } = await started();
    assert.equal(codeOf(await wrong()), 'sign-in-failed');
    const [event] = await signInEvents();
    assert.deepEqual([event?.type, event?.accountId], ['SignInFailed', account]);
    assert.deepEqual([event?.data['factor'], event?.data['reason']], ['password', 'password-wrong']);
    assert.deepEqual(event?.actor, { kind: 'system', id: 'sign-in' });
  });

  test('has the start of a very long user agent kept, and none kept that the request does not name', async () => {
    const { attempt, vault, account, signInEvents } = await started();
    accepted(await attempt({}, { userAgent: 'x'.repeat(USER_AGENT_LENGTH_MAX + 1), address: '' }));
    accepted(await attempt({}, { userAgent: null }));
    accepted(await attempt({}, { userAgent: 'y'.repeat(USER_AGENT_LENGTH_MAX) }));
    const [long, none, whole] = await signInEvents();
    assert.equal(await vault.get(account, 'user-agent', refIn(whole?.data)), 'y'.repeat(USER_AGENT_LENGTH_MAX));
    const kept = await vault.get(account, 'user-agent', refIn(long?.data));
    assert.equal(kept, 'x'.repeat(USER_AGENT_LENGTH_MAX));
    assert.equal(long?.sourceAddressRef, null);
    assert.equal(none?.data['user_agent_ref'], null);
  });

  test('cannot sign in any more once the account is erased', async () => {
    const { node, attempt, account } = await started();
    accepted(await eraseAccount(node, CAUSE, account));
    assert.equal(codeOf(await attempt()), 'sign-in-failed');
  });
});

describe('An attacker who looks for accounts', () => {
  test('gets the same answer for the same work, whether the account exists, is erased or has another password', async () => {
    const { node, wrong, verified } = await started();
    const gone = await newAccount(node, 'gone');
    accepted(await eraseAccount(node, CAUSE, gone));
    const logins = [
      'ada',
      'ada@example.org',
      'nobody',
      'nobody@example.org',
      'gone',
      'gone@example.org',
      '',
      '@',
      'A/../b',
    ];
    logins.push('x'.repeat(EMAIL_LENGTH_MAX), 'x'.repeat(EMAIL_LENGTH_MAX + 1));
    for (const login of logins) {
      verified.length = 0;
      assert.deepEqual(await wrong({ login }), { refused: { code: 'sign-in-failed' } }, login);
      assert.equal(verified.length, 1, login);
    }
  });

  test('is limited alike for a name that exists and for one that does not', async () => {
    const { wrong } = await started();
    for (const login of ['ada', 'nobody', 'ada@example.org']) {
      const codes: (string | null)[] = [];
      for (let n = 0; n <= SIGN_IN_FAILURES_PAIR_MAX; n += 1) codes.push(codeOf(await wrong({ login })));
      assert.equal(codes.filter((code) => code === 'sign-in-failed').length, SIGN_IN_FAILURES_PAIR_MAX, login);
      assert.equal(codes.at(-1), 'too-many-attempts', login);
    }
  });

  test('does not wait for the event of a failure, which would show that the account exists', async () => {
    const { log, wrong, node } = await started();
    let release = (): void => undefined;
    log.on.append = () =>
      new Promise<void>((resolve) => {
        release = resolve;
      });
    assert.equal(codeOf(await wrong()), 'sign-in-failed');
    log.on.append = undefined;
    release();
    await node.background.settled();
  });

  test('cannot make the service hash a password that no account can have', async () => {
    const { attempt, verified } = await started();
    assert.equal(codeOf(await attempt({ password: 'x'.repeat(PASSWORD_LENGTH_MAX + 1) })), 'sign-in-failed');
    assert.equal(codeOf(await attempt({ password: 'x'.repeat(PASSWORD_LENGTH_MAX) })), 'sign-in-failed');
    assert.deepEqual([verified[0], typeof verified[1]], [null, 'string']);
  });
});

describe('An attacker who guesses passwords', () => {
  test('has no more failures for the spellings of a domain', async () => {
    const { wrong } = await started();
    const logins = ['ada@münchen.example', 'ada@xn--mnchen-3ya.example', 'ada@ｍünchen.example'];
    for (let n = 0; n < SIGN_IN_FAILURES_PAIR_MAX; n += 1) {
      assert.equal(codeOf(await wrong({ login: logins[n % logins.length] ?? '' })), 'sign-in-failed');
    }
    for (const login of logins) assert.equal(codeOf(await wrong({ login })), 'too-many-attempts', login);
  });

  test('has ten failures in fifteen minutes from one network, on whichever node', async () => {
    const { node, another, clock, wrong } = await started();
    const other = await another();
    const login = { login: 'ada', password: 'wrong horse battery', knownBrowser: () => null };
    for (let n = 0; n < SIGN_IN_FAILURES_PAIR_MAX; n += 1) {
      assert.equal(codeOf(await signIn(n % 2 === 0 ? node : other, HERE, login)), 'sign-in-failed');
    }
    assert.deepEqual(await wrong(), { refused: { code: 'too-many-attempts', waitSeconds: 900 } });
    assert.equal(
      codeOf(await wrong({ password: PASSWORD })),
      'too-many-attempts',
      'the right one is not even compared',
    );
    clock.advance(SIGN_IN_FAILURES_SPAN_MS - 1);
    assert.deepEqual(await wrong(), { refused: { code: 'too-many-attempts', waitSeconds: 1 } });
    clock.advance(1);
    accepted(await wrong({ password: PASSWORD }));
  });

  test('has no more of them by racing', async () => {
    const { wrong } = await started();
    const results = await Promise.all(Array.from({ length: 50 }, () => wrong()));
    const compared = results.filter((result) => codeOf(result) === 'sign-in-failed');
    assert.equal(compared.length, SIGN_IN_FAILURES_PAIR_MAX);
  });

  test('has a hundred failures against one account from many networks', async () => {
    const { wrong } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_LOGIN_MAX; n += 1) {
      assert.equal(codeOf(await wrong({}, { address: `198.51.100.${n}` })), 'sign-in-failed');
    }
    assert.equal(codeOf(await wrong({}, { address: '203.0.113.1' })), 'too-many-attempts');
    assert.equal(codeOf(await wrong({ login: 'bob' }, { address: '203.0.113.1' })), 'sign-in-failed');
  });

  test('writes no more events for an account than it has failures, under both of its names', async () => {
    const { wrong, signInEvents } = await started();
    for (let n = 0; n < 2 * SIGN_IN_FAILURES_LOGIN_MAX; n += 1) {
      for (const login of ['ada', 'ada@example.org', ' ADA ', 'Ada@EXAMPLE.org']) {
        await wrong({ login }, { address: `198.51.${n}.1` });
      }
    }
    assert.equal((await signInEvents()).length, 2 * SIGN_IN_FAILURES_LOGIN_MAX);
  });

  test('has a hundred failures from one network against many accounts, whatever its addresses', async () => {
    const { wrong } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_NETWORK_MAX; n += 1) {
      const address = `2001:db8:7:1::${n.toString(16)}`;
      assert.equal(codeOf(await wrong({ login: `name-${n}` }, { address })), 'sign-in-failed');
    }
    assert.equal(codeOf(await wrong({ login: 'ada' }, { address: '2001:db8:7:1::ffff' })), 'too-many-attempts');
    assert.equal(codeOf(await wrong({ login: 'ada' }, { address: '2001:db8:7:2::1' })), 'sign-in-failed');
  });

  test('has five hundred failures from all networks of a /48', async () => {
    const { wrong } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_WIDE_MAX; n += 1) {
      const address = `2001:db8:7:${n.toString(16)}::1`;
      assert.equal(codeOf(await wrong({ login: `name-${n}` }, { address })), 'sign-in-failed');
    }
    assert.equal(codeOf(await wrong({ login: 'ada' }, { address: '2001:db8:7:ffff::9' })), 'too-many-attempts');
    assert.equal(codeOf(await wrong({ login: 'ada' }, { address: '2001:db8:8::1' })), 'sign-in-failed');
  });

  test('cannot lock a person out from all networks of one /48', async () => {
    const { attempt, wrong } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_LOGIN_MAX; n += 1) await wrong({}, { address: `2001:db8:7:${n}::1` });
    assert.equal(codeOf(await attempt({}, { address: '2001:db8:7:ffff::1' })), 'too-many-attempts');
    accepted(await attempt());
  });

  test('costs no comparison once a limit is reached', async () => {
    const { wrong, verified } = await started();
    for (let n = 0; n < 2 * SIGN_IN_FAILURES_PAIR_MAX; n += 1) await wrong();
    assert.equal(verified.length, SIGN_IN_FAILURES_PAIR_MAX);
  });

  test('waits among strangers, while a browser that has signed in before has a turn of its account', async () => {
    const { account, attempt, turns } = await started();
    const knownBrowser = (id: AccountId): string | null => (id === account ? 'browser-1' : null);
    accepted(await attempt({ knownBrowser }));
    for (const more of [{ knownBrowser, login: 'nobody' }, { knownBrowser: () => null }, { knownBrowser: null }]) {
      await attempt(more);
    }
    const stranger = { kind: 'stranger', address: HERE.address };
    assert.deepEqual(turns, [{ kind: 'known', account }, stranger, stranger, stranger]);
  });

  test('cannot lock the owner out of a browser that has signed in before, nor use its count', async () => {
    const { account, attempt, wrong } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_LOGIN_MAX; n += 1) await wrong({}, { address: `198.51.100.${n}` });
    assert.equal(codeOf(await attempt()), 'too-many-attempts');
    const knownBrowser = (id: AccountId): string | null => (id === account ? 'browser-1' : null);
    accepted(await attempt({ knownBrowser }));
    for (let n = 0; n < SIGN_IN_FAILURES_BROWSER_MAX; n += 1) {
      assert.equal(codeOf(await wrong({ knownBrowser })), 'sign-in-failed');
    }
    assert.equal(codeOf(await wrong({ knownBrowser })), 'too-many-attempts');
    accepted(await attempt({ knownBrowser: () => 'browser-2' }));
  });

  test('costs nothing while the service is too busy to compare passwords', async () => {
    const { node, log } = await started();
    const expectRoom = (): never => {
      throw new PasswordHasherError('password-hasher-busy', '');
    };
    const untouched = { take: () => assert.fail(), giveBack: () => assert.fail() };
    const busy = { ...node, passwords: { ...node.passwords, expectRoom }, rateLimits: untouched };
    const { reads } = log.counts;
    const wrong = { login: 'nobody', password: 'wrong horse battery', knownBrowser: null };
    await assert.rejects(signIn(busy, HERE, wrong), { code: 'password-hasher-busy' });
    assert.equal(log.counts.reads, reads);
  });

  test('does not use up the tries of others while the service is too busy to compare passwords', async () => {
    const { node, attempt } = await started();
    const busy = {
      ...node,
      passwords: {
        ...node.passwords,
        verify: () => Promise.reject(new PasswordHasherError('password-hasher-busy', '')),
      },
    };
    const wrong = { login: 'ada', password: 'wrong horse battery', knownBrowser: () => null };
    for (let n = 0; n < 2 * SIGN_IN_FAILURES_PAIR_MAX; n += 1) {
      await assert.rejects(signIn(busy, HERE, wrong), { code: 'password-hasher-busy' });
    }
    accepted(await attempt());
  });

  test('uses up nothing by successes', async () => {
    const { attempt, wrong } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_LOGIN_MAX + 1; n += 1) accepted(await attempt());
    for (let n = 0; n < SIGN_IN_FAILURES_PAIR_MAX; n += 1) assert.equal(codeOf(await wrong()), 'sign-in-failed');
    assert.equal(codeOf(await attempt()), 'too-many-attempts');
  });
});
