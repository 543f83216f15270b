/** The credentials of roles that a node keeps. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { ROLE_SESSION_SECONDS } from '../../../adapters/sts/assume-role.ts';
import {
  createKeptRoles,
  ROLE_REFUSAL_KEPT_MS,
  ROLE_RENEWAL_MS,
  ROLE_USE_MIN_MS,
  ROLES_KEPT_MAX,
} from '../../../adapters/sts/roles.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import { type RoleAccess, type RoleCredentials, RoleRefused } from '../../../core/ports/buckets.ts';
import { newAccount } from '../../support/events.ts';
import { createTestClock } from '../../support/test-clock.ts';

const SESSION_MS = ROLE_SESSION_SECONDS * 1_000;

function accessTo(role: string): RoleAccess {
  return { mode: 'OIDC', account: newAccount(), roleArn: `arn:aws:iam::123456789012:role/${role}` };
}

/** A token service whose answers the test holds back. */
function createHeldService() {
  const clock = createTestClock();
  const waiting: { readonly resolve: (given: RoleCredentials) => void; readonly reject: (error: Error) => void }[] = [];
  const asked = { times: 0 };
  const roles = createKeptRoles(
    {
      assumeRole: () => {
        asked.times += 1;
        return new Promise((resolve, reject) => waiting.push({ resolve, reject }));
      },
      close: () => undefined,
    },
    clock,
  );
  const give = (spanMs = SESSION_MS): RoleCredentials => {
    const name = String(asked.times);
    const given = { accessKeyId: `key ${name}`, secretAccessKey: 'secret', sessionToken: `session ${name}` };
    const credentials = { ...given, expiresAt: plusMs(clock.now(), spanMs) };
    waiting.shift()?.resolve(credentials);
    return credentials;
  };
  const fail = (error: Error): void => waiting.shift()?.reject(error);
  return { roles, clock, asked, give, fail };
}

const refusal = () => new RoleRefused('credentials-refused', 'No');

describe('The credentials of a role', () => {
  test('are fetched once for 100 callers, and kept for those who come later', async () => {
    const { roles, asked, give } = createHeldService();
    const access = accessTo('a');
    const callers = Array.from({ length: 100 }, () => roles.credentials(access));
    const given = give();
    for (const caller of callers) assert.equal(await caller, given);
    assert.equal(await roles.credentials(access), given);
    assert.equal(asked.times, 1);
  });

  test('are renewed five minutes before they end, once, while callers go on with the old ones', async () => {
    const { roles, clock, asked, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    const given = give();
    await first;
    clock.advance(SESSION_MS - ROLE_RENEWAL_MS - 1);
    assert.equal(await roles.credentials(access), given);
    assert.equal(asked.times, 1);
    clock.advance(1);
    for (let n = 0; n < 10; n += 1) assert.equal(await roles.credentials(access), given);
    assert.equal(asked.times, 2);
    const renewed = give();
    await Promise.resolve();
    assert.equal(await roles.credentials(access), renewed);
    assert.equal(asked.times, 2);
  });

  test('that end within a minute are not used: the caller waits for others', async () => {
    const { roles, clock, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    const given = give();
    await first;
    clock.advance(SESSION_MS - ROLE_USE_MIN_MS - 1);
    assert.equal(await roles.credentials(access), given);
    clock.advance(1);
    const next = roles.credentials(access);
    const renewed = give();
    assert.equal(await next, renewed);
  });

  test('are used to their end if they cannot be renewed, and only then show why', async () => {
    const { roles, clock, asked, give, fail } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    const given = give();
    await first;
    clock.advance(SESSION_MS - ROLE_RENEWAL_MS);
    assert.equal(await roles.credentials(access), given);
    fail(new RoleRefused('unreachable', 'Down'));
    await new Promise(setImmediate);
    // A failed renewal is not repeated at every call.
    for (let n = 0; n < 10; n += 1) assert.equal(await roles.credentials(access), given);
    assert.equal(asked.times, 2);
    clock.advance(ROLE_RENEWAL_MS - ROLE_USE_MIN_MS);
    const last = roles.credentials(access);
    fail(new RoleRefused('unreachable', 'Down'));
    await assert.rejects(last, { name: 'RoleRefused', code: 'unreachable', message: 'Down' });
  });

  // The attack: pushes without end to a bucket whose role was taken away.
  test('that were refused are not asked for again for five seconds', async () => {
    const { roles, clock, asked, fail, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    fail(refusal());
    await assert.rejects(first, refusal());
    clock.advance(ROLE_REFUSAL_KEPT_MS - 1);
    for (let n = 0; n < 10; n += 1) await assert.rejects(roles.credentials(access), refusal());
    assert.equal(asked.times, 1);
    clock.advance(1);
    const next = roles.credentials(access);
    give();
    await next;
    assert.equal(asked.times, 2);
  });

  test('after a fault of this service itself are asked for immediately', async () => {
    const { roles, asked, fail, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    fail(new Error('The keys cannot be read'));
    await assert.rejects(first, /The keys cannot be read/);
    const next = roles.credentials(access);
    give();
    await next;
    assert.equal(asked.times, 2);
  });

  // The attack: a token service whose clock is an hour behind makes the node ask without end.
  test('that have ended when they come are a fault of the clocks', async () => {
    const { roles, asked, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    give(ROLE_USE_MIN_MS);
    await assert.rejects(first, { code: 'clock-skewed' });
    await assert.rejects(roles.credentials(access), { code: 'clock-skewed' });
    assert.equal(asked.times, 1);
  });

  test('that a store refused are fetched again once, though 100 requests drop them', async () => {
    const { roles, asked, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    give();
    const old = await first;
    const late = Array.from({ length: 100 }, () => {
      roles.drop(access, old);
      return roles.credentials(access);
    });
    const given = give();
    for (const one of late) assert.equal(await one, given);
    // The last of them arrives when others are there already.
    roles.drop(access, old);
    assert.equal(await roles.credentials(access), given);
    assert.equal(asked.times, 2);
  });

  test('and a kept refusal are forgotten for who tries the trust itself', async () => {
    const { roles, asked, fail, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    fail(refusal());
    await assert.rejects(first);
    roles.drop(access);
    const second = roles.credentials(access);
    const given = give();
    assert.equal(await second, given);
    roles.drop(access);
    const third = roles.credentials(access);
    give();
    assert.notEqual(await third, given);
    assert.equal(asked.times, 3);
  });

  // The attack: an account names the role of another one, and gets the credentials that the node keeps for it.
  test('of one account are never given to another', async () => {
    const { roles, asked, give } = createHeldService();
    const access = accessTo('a');
    const first = roles.credentials(access);
    const given = give();
    await first;
    const other = roles.credentials({ ...access, account: newAccount() });
    const others = give();
    assert.equal(await other, others);
    assert.notEqual(others.sessionToken, given.sessionToken);
    assert.equal(asked.times, 2);
  });

  test('are kept for as many roles as the limit allows; one more displaces the least used', async () => {
    const { roles, asked, give } = createHeldService();
    const accesses = Array.from({ length: ROLES_KEPT_MAX + 1 }, (_, n) => accessTo(`role-${n}`));
    const use = async (access: RoleAccess) => {
      const before = asked.times;
      const used = roles.credentials(access);
      if (asked.times > before) give();
      await used;
      return asked.times > before;
    };
    const [oldest = accessTo(''), second = accessTo('')] = accesses;
    for (const access of accesses.slice(0, -1)) await use(access);
    assert.equal(await use(oldest), false);
    await use(accesses.at(-1) ?? oldest);
    assert.equal(await use(oldest), false);
    assert.equal(await use(second), true);
  });
});
