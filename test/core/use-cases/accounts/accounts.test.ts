/** Accounts and their names across three streams, even if the process stops between any two steps. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { emailClaims, usernameClaims } from '../../../../core/claim/evolve.ts';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { type AccountId, type EventId, plusMs } from '../../../../core/kernel/ids.ts';
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from '../../../../core/kernel/limits.ts';
import type { Failpoint } from '../../../../core/ports/failpoints.ts';
import {
  changePassword,
  changePlan,
  createAccount,
  findAccount,
  type NewAccount,
} from '../../../../core/use-cases/accounts/accounts.ts';
import { CLAIM_SPAN_MS } from '../../../../core/use-cases/accounts/claims.ts';
import { accepted, codeOf, codesOf } from '../../../support/accounts.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

const ADA: NewAccount = { username: 'ada', email: 'Ada@Example.org', password: 'correct horse', plan: 'FREE' };

async function started() {
  const log = watchLog();
  const vault = createMemoryVault();
  const clock = createTestClock();
  const node = await startNode(log, { vault, clock });
  const create = (more: Partial<NewAccount> = {}) => createAccount(node, CAUSE, { ...ADA, ...more });
  const claimOf = async (name: string) => (await node.entities.reload(usernameClaims, name)).state;
  const emailClaimOf = async (email: string) =>
    (await node.entities.reload(emailClaims, await vault.fingerprint('email', email.toLowerCase()))).state;
  return { log, vault, clock, node, create, claimOf, emailClaimOf };
}

/** Returns the account that has the claim of ADA's name. */
async function findClaimed({ claimOf }: Awaited<ReturnType<typeof started>>): Promise<AccountId> {
  const claim = await claimOf('ada');
  assert.ok(claim.status !== 'free');
  return claim.account;
}

/** Stops the process at its nth append: before the append, or after it but before its result is known. */
async function dieAt(parts: Awaited<ReturnType<typeof started>>, n: number, when: 'append' | 'appended') {
  let appends = 0;
  parts.log.on[when] = () => {
    appends += 1;
    if (appends === n) throw new Error('killed');
  };
  await assert.rejects(parts.create(), /killed/);
  parts.log.on[when] = undefined;
  return startNode(parts.log, { vault: parts.vault, clock: parts.clock });
}

describe('A new account', () => {
  test('holds its username and its address, and its secrets are in the vault', async () => {
    const { node, vault, create, claimOf, emailClaimOf } = await started();
    const { id } = accepted(await create());
    assert.deepEqual(await claimOf('ada'), { status: 'held', account: id });
    assert.deepEqual(await emailClaimOf(ADA.email), { status: 'held', account: id });
    const { state } = await node.entities.get(accounts, id);
    assert.ok(state.status === 'open');
    assert.equal(await vault.get(id, 'email', state.emailRef), ADA.email);
    assert.equal(await vault.get(id, 'password-hash', state.passwordHashRef), `hash of ${ADA.password}`);
    const events = await node.events.readAll(0n as Parameters<typeof node.events.readAll>[0], 100);
    const text = JSON.stringify(events, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
    for (const secret of [ADA.email, ADA.email.toLowerCase(), ADA.password]) assert.equal(text.includes(secret), false);
    assert.equal(await findAccount(node, 'ada'), id);
  });

  test('needs a valid username, address and password, or nothing is written', async () => {
    const { log, create } = await started();
    assert.equal(codeOf(await create({ username: 'Ada' })), 'username-invalid');
    assert.equal(codeOf(await create({ username: 'admin' })), 'username-reserved');
    assert.equal(codeOf(await create({ email: 'ada' })), 'email-invalid');
    assert.equal(codeOf(await create({ password: '😀'.repeat(PASSWORD_LENGTH_MIN - 1) })), 'password-length');
    assert.equal(codeOf(await create({ password: 'x'.repeat(PASSWORD_LENGTH_MAX + 1) })), 'password-length');
    assert.equal(log.counts.appends, 0);
    accepted(await create({ password: '😀'.repeat(PASSWORD_LENGTH_MIN) }));
    const more = { username: 'bob', email: 'bob@example.org', password: 'x'.repeat(PASSWORD_LENGTH_MAX) };
    accepted(await create(more));
  });

  test('cannot get a username that is taken', async () => {
    const { create } = await started();
    accepted(await create());
    assert.equal(codeOf(await create({ email: 'other@example.org' })), 'username-taken');
  });

  test('cannot get an address that is taken, in any case of letters, and releases its username', async () => {
    const { node, create, claimOf } = await started();
    accepted(await create());
    assert.equal(codeOf(await create({ username: 'bob', email: 'aDA@eXAMPLE.oRG' })), 'email-taken');
    assert.deepEqual(await claimOf('bob'), { status: 'free' });
    assert.equal(await findAccount(node, 'bob'), null);
    accepted(await create({ username: 'bob', email: 'bob@example.org' }));
  });

  test('is the only one that gets its username when many requests race on several nodes', async () => {
    const { log, vault, clock } = await started();
    const nodes = await Promise.all(Array.from({ length: 4 }, () => startNode(log, { vault, clock })));
    const results = await Promise.all(
      Array.from({ length: 20 }, (_, n) => {
        const node = nodes[n % nodes.length];
        assert.ok(node !== undefined);
        return createAccount(node, CAUSE, { ...ADA, email: `ada${n}@example.org` });
      }),
    );
    assert.deepEqual(codesOf(results), { created: 1, 'username-taken': 19 });
  });

  test('is the only one that gets its address when many requests race', async () => {
    const { create } = await started();
    const results = await Promise.all(Array.from({ length: 10 }, (_, n) => create({ username: `ada${n}` })));
    assert.deepEqual(codesOf(results), { created: 1, 'email-taken': 9 });
  });
});

/** The appends of a creation: both claims, the account, both confirmations. */
const STEPS = ['username claimed', 'address claimed', 'account created', 'username confirmed', 'address confirmed'];

describe('A creation that is interrupted', () => {
  for (const [index, step] of STEPS.entries()) {
    for (const when of ['append', 'appended'] as const) {
      const created = index > 2 || (index === 2 && when === 'appended');
      const claimed = index > 0 || when === 'appended';

      test(`${when === 'append' ? 'before' : 'after'} "${step}" ${created ? 'leaves the account its names permanently' : 'leaves claims that lapse'}`, async () => {
        const parts = await started();
        const node = await dieAt(parts, index + 1, when);
        const again = () => createAccount(node, CAUSE, ADA);
        assert.equal(codeOf(await again()), claimed ? 'username-taken' : null);
        if (!claimed) return;
        const id = await findAccount(node, 'ada');
        assert.equal(id !== null, created);
        parts.clock.advance(CLAIM_SPAN_MS + 1);
        assert.equal(codeOf(await again()), created ? 'username-taken' : null);
        assert.equal(codeOf(await createAccount(node, CAUSE, { ...ADA, username: 'bob' })), 'email-taken');
        if (created) assert.equal(await findAccount(node, 'ada'), id);
        assert.equal((await parts.claimOf('ada')).status, 'held');
        assert.equal((await parts.emailClaimOf(ADA.email)).status, 'held');
      });
    }
  }

  test('stops at each of the failpoints between its appends', async () => {
    const { log, node } = await started();
    const steps: string[] = [];
    log.on.appended = ({ events, stream }) => void steps.push(`${stream.split('-')[0]} ${events[0]?.type}`);
    const failpoint: Failpoint = async (point) => void steps.push(point);
    accepted(await createAccount({ ...node, failpoint }, CAUSE, ADA));
    assert.deepEqual(steps, [
      'username Claimed',
      'account-username-claimed',
      'email Claimed',
      'account-email-claimed',
      'account AccountCreated',
      'account-created',
      'username Confirmed',
      'account-username-confirmed',
      'email Confirmed',
    ]);
  });

  test('leaves the names to an account that was created, even if that is closed by now', async () => {
    const parts = await started();
    const node = await dieAt(parts, 3, 'appended');
    const account = await findClaimed(parts);
    await parts.log.append({
      stream: streamName('account', account),
      expected: 0,
      events: [
        {
          ...{ ...CAUSE, id: node.ids.next<EventId>(), type: 'AccountClosed', version: 1, accountId: account },
          ...{ isRecord: true },
          ...{ occurredAt: parts.clock.now(), data: { erase_at: plusMs(parts.clock.now(), 1_000) } },
        },
      ],
    });
    parts.clock.advance(CLAIM_SPAN_MS + 1);
    assert.equal(codeOf(await createAccount(node, CAUSE, ADA)), 'username-taken');
    assert.deepEqual(await parts.claimOf('ada'), { status: 'held', account });
  });

  test('keeps its names for their whole time', async () => {
    const parts = await started();
    const node = await dieAt(parts, 2, 'append');
    parts.clock.advance(CLAIM_SPAN_MS);
    assert.equal(codeOf(await createAccount(node, CAUSE, ADA)), 'username-taken');
    parts.clock.advance(1);
    assert.equal(codeOf(await createAccount(node, CAUSE, ADA)), null);
  });
});

describe('A claim that was taken over', () => {
  /** A creation that pauses before its third append until its claims have lapsed. */
  async function slow() {
    const parts = await started();
    const { promise: paused, resolve: pause } = Promise.withResolvers<void>();
    const { promise: resumed, resolve: resume } = Promise.withResolvers<void>();
    let appends = 0;
    parts.log.on.append = async () => {
      appends += 1;
      if (appends !== 3) return;
      pause();
      await resumed;
    };
    const creation = parts.create();
    await paused;
    parts.clock.advance(CLAIM_SPAN_MS + 1);
    const node = await startNode(parts.log, { vault: parts.vault, clock: parts.clock });
    return { ...parts, node, creation, resume };
  }

  test('leaves its late creator nothing', async () => {
    const { node, creation, resume, claimOf, emailClaimOf } = await slow();
    const { id } = accepted(await createAccount(node, CAUSE, ADA));
    resume();
    assert.equal(codeOf(await creation), 'username-taken');
    assert.deepEqual(await claimOf('ada'), { status: 'held', account: id });
    assert.deepEqual(await emailClaimOf(ADA.email), { status: 'held', account: id });
    assert.equal(await findAccount(node, 'ada'), id);
  });

  test('leaves no second name claimed: a name that nobody took over is free again immediately', async () => {
    const { node, creation, resume, emailClaimOf } = await slow();
    accepted(await createAccount(node, CAUSE, { ...ADA, email: 'other@example.org' }));
    resume();
    assert.equal(codeOf(await creation), 'username-taken');
    assert.deepEqual(await emailClaimOf(ADA.email), { status: 'free' });
  });

  test('goes to only one of many requests', async () => {
    const { log, vault, clock, creation, resume, claimOf } = await slow();
    const nodes = await Promise.all(Array.from({ length: 3 }, () => startNode(log, { vault, clock })));
    const results = await Promise.all(
      nodes.map((node, n) => createAccount(node, CAUSE, { ...ADA, email: `ada${n}@example.org` })),
    );
    assert.equal(results.filter((result) => 'id' in result).length, 1);
    resume();
    assert.equal(codeOf(await creation), 'username-taken');
    assert.equal((await claimOf('ada')).status, 'held');
  });

  test('is not taken over again from an account that claimed it in between, however old its claim looks', async () => {
    const parts = await started();
    const fast = await dieAt(parts, 2, 'append');
    const behind = await startNode(watchLog(parts.log), { vault: parts.vault, clock: createTestClock() });
    behind.clock.advance(CLAIM_SPAN_MS + 1);
    parts.clock.advance(5 * CLAIM_SPAN_MS);
    const rival = Promise.withResolvers<void>();
    const creations: ReturnType<typeof createAccount>[] = [];
    parts.log.on.appended = async ({ events }) => {
      if (events[0]?.type !== 'Abandoned') return;
      // The first claim is abandoned. Before its name is claimed again, the slow node claims it and then pauses.
      parts.log.on.appended = undefined;
      const claimed = Promise.withResolvers<void>();
      parts.log.on.append = async (request) => {
        if (!request.stream.startsWith('email-') || parts.log.on.append === undefined) return;
        parts.log.on.append = undefined;
        claimed.resolve();
        await rival.promise;
      };
      creations.push(createAccount(behind, CAUSE, { ...ADA, email: 'rival@example.org' }));
      await claimed.promise;
    };
    assert.equal(codeOf(await createAccount(fast, CAUSE, ADA)), 'username-taken');
    rival.resolve();
    const [creation] = await Promise.all(creations);
    assert.ok(creation !== undefined && 'id' in creation);
    assert.deepEqual(await parts.claimOf('ada'), { status: 'held', account: creation.id });
  });
});

describe('An account', () => {
  test('is found by its username only, from its creation on', async () => {
    const { node, create } = await started();
    assert.equal(await findAccount(node, 'ada'), null);
    const { id } = accepted(await create());
    assert.equal(await findAccount(node, 'ada'), id);
    for (const name of ['', 'Ada', 'a', '../ada', 'ada\n']) assert.equal(await findAccount(node, name), null);
  });

  test('changes its plan', async () => {
    const { node, create } = await started();
    const { id } = accepted(await create());
    assert.deepEqual(await changePlan(node, CAUSE, id, 'PRO'), { plan: 'PRO' });
    const { state } = await node.entities.get(accounts, id);
    assert.equal(state.status === 'open' ? state.plan : null, 'PRO');
  });

  test('changes its password, and the old hash is removed from the vault', async () => {
    const { node, vault, create } = await started();
    const { id } = accepted(await create());
    const before = (await node.entities.get(accounts, id)).state;
    assert.ok(before.status === 'open');
    assert.equal(codeOf(await changePassword(node, { account: id, cause: CAUSE }, 'too short')), 'password-length');
    assert.deepEqual(await changePassword(node, { account: id, cause: CAUSE }, 'battery staple'), { epoch: 1 });
    const after = (await node.entities.get(accounts, id)).state;
    assert.ok(after.status === 'open');
    assert.equal(await vault.get(id, 'password-hash', after.passwordHashRef), 'hash of battery staple');
    assert.equal(await vault.get(id, 'password-hash', before.passwordHashRef), null);
  });

  test('keeps only the last hash in the vault when two requests change its password at the same time', async () => {
    const { node, vault, create } = await started();
    const { id } = accepted(await create());
    const refs = new Set<string>();
    const changes = ['first password', 'second password'].map((password) =>
      changePassword(node, { account: id, cause: CAUSE }, password),
    );
    await Promise.all(changes);
    const { stream, state } = await node.entities.get(accounts, id);
    assert.ok(state.status === 'open');
    for (const { data } of await node.events.readStream(stream, { direction: 'forwards', limit: 10 })) {
      refs.add((data as { readonly password_hash_ref: string }).password_hash_ref);
    }
    assert.equal(refs.size, 3);
    for (const ref of refs) {
      const kept = await vault.get(id, 'password-hash', ref as typeof state.passwordHashRef);
      assert.equal(kept !== null, ref === state.passwordHashRef);
    }
  });

  test('changes nothing if it does not exist', async () => {
    const { node } = await started();
    const id = node.ids.next<AccountId>();
    assert.equal(codeOf(await changePlan(node, CAUSE, id, 'PRO')), 'account-not-found');
    assert.equal(
      codeOf(await changePassword(node, { account: id, cause: CAUSE }, 'battery staple')),
      'account-not-found',
    );
  });
});
