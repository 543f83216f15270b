/** Accounts and their names across three streams, also when the process dies between any two of its steps. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { emailClaims, usernameClaims } from '../../../../core/claim/evolve.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import { CLAIM_SPAN_MS, PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from '../../../../core/kernel/limits.ts';
import type { Reach } from '../../../../core/ports/failpoints.ts';
import {
  changePassword,
  changePlan,
  createAccount,
  findAccount,
  type NewAccount,
} from '../../../../core/use-cases/accounts/accounts.ts';
import { accepted, codeOf, codesOf } from '../../../support/accounts.ts';
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

/** The process dies at its nth append: before it happens, or after it did and before anybody heard. */
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
  test('holds its username and its address, and its secrets lie in the vault', async () => {
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

  test('has a valid username, address and password, or nothing happens', async () => {
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

  test('cannot have a username that is taken', async () => {
    const { create } = await started();
    accepted(await create());
    assert.equal(codeOf(await create({ email: 'other@example.org' })), 'username-taken');
  });

  test('cannot have an address that is taken, in any case of letters, and gives its username back', async () => {
    const { node, create, claimOf } = await started();
    accepted(await create());
    assert.equal(codeOf(await create({ username: 'bob', email: 'aDA@eXAMPLE.oRG' })), 'email-taken');
    assert.deepEqual(await claimOf('bob'), { status: 'free' });
    assert.equal(await findAccount(node, 'bob'), null);
    accepted(await create({ username: 'bob', email: 'bob@example.org' }));
  });

  test('wins its username against all who want it at once, on any node', async () => {
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

  test('wins its address against all who want it at once', async () => {
    const { create } = await started();
    const results = await Promise.all(Array.from({ length: 10 }, (_, n) => create({ username: `ada${n}` })));
    assert.deepEqual(codesOf(results), { created: 1, 'email-taken': 9 });
  });
});

/** The appends of a creation: both claims, the account, both confirmations. */
const STEPS = ['username claimed', 'address claimed', 'account created', 'username confirmed', 'address confirmed'];

describe('A creation cut off', () => {
  for (const [index, step] of STEPS.entries()) {
    for (const when of ['append', 'appended'] as const) {
      const created = index > 2 || (index === 2 && when === 'appended');
      const claimed = index > 0 || when === 'appended';

      test(`${when === 'append' ? 'before' : 'after'} "${step}" ${created ? 'leaves the account its names for ever' : 'leaves names that run out'}`, async () => {
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

  test('can be cut at the named points between its appends', async () => {
    const { log, node } = await started();
    const steps: string[] = [];
    log.on.appended = ({ events, stream }) => void steps.push(`${stream.split('-')[0]} ${events[0]?.type}`);
    const reach: Reach = async (point) => void steps.push(point);
    accepted(await createAccount({ ...node, reach }, CAUSE, ADA));
    assert.deepEqual(steps, [
      'username Claimed',
      'account-username-claimed',
      'email Claimed',
      'account AccountCreated',
      'account-created',
      'username Confirmed',
      'email Confirmed',
    ]);
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

describe('A claim that is taken over', () => {
  /** A creation that stands still before its third append, until its names have run out. */
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

  test('is not left claimed in half: what nobody took over is free again at once', async () => {
    const { node, creation, resume, emailClaimOf } = await slow();
    accepted(await createAccount(node, CAUSE, { ...ADA, email: 'other@example.org' }));
    resume();
    assert.equal(codeOf(await creation), 'username-taken');
    assert.deepEqual(await emailClaimOf(ADA.email), { status: 'free' });
  });

  test('is taken over by one of many', async () => {
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

  test('is not taken over from another account that claimed meanwhile, however long ago it seems', async () => {
    const parts = await started();
    const fast = await dieAt(parts, 2, 'append');
    const behind = await startNode(watchLog(parts.log), { vault: parts.vault, clock: createTestClock() });
    behind.clock.advance(CLAIM_SPAN_MS + 1);
    parts.clock.advance(5 * CLAIM_SPAN_MS);
    const rival = Promise.withResolvers<void>();
    const creations: ReturnType<typeof createAccount>[] = [];
    parts.log.on.appended = async ({ events }) => {
      if (events[0]?.type !== 'Abandoned') return;
      // The first claim is abandoned; before its name is claimed anew, the node behind claims it, and then is slow.
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
  test('is looked up by its username alone, from the account on that holds it', async () => {
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

  test('changes its password, and the old hash leaves the vault', async () => {
    const { node, vault, create } = await started();
    const { id } = accepted(await create());
    const before = (await node.entities.get(accounts, id)).state;
    assert.ok(before.status === 'open');
    assert.equal(codeOf(await changePassword(node, CAUSE, id, 'too short')), 'password-length');
    assert.deepEqual(await changePassword(node, CAUSE, id, 'battery staple'), { changed: true });
    const after = (await node.entities.get(accounts, id)).state;
    assert.ok(after.status === 'open');
    assert.equal(await vault.get(id, 'password-hash', after.passwordHashRef), 'hash of battery staple');
    assert.equal(await vault.get(id, 'password-hash', before.passwordHashRef), null);
  });

  test('whose password two change at once keeps one hash in the vault, the last', async () => {
    const { node, vault, create } = await started();
    const { id } = accepted(await create());
    const refs = new Set<string>();
    const changes = ['first password', 'second password'].map((password) => changePassword(node, CAUSE, id, password));
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

  test('that does not exist changes nothing', async () => {
    const { node } = await started();
    const id = node.ids.next<AccountId>();
    assert.equal(codeOf(await changePlan(node, CAUSE, id, 'PRO')), 'account-not-found');
    assert.equal(codeOf(await changePassword(node, CAUSE, id, 'battery staple')), 'account-not-found');
  });
});
