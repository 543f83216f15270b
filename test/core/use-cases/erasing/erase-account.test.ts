/** An erased account is gone immediately, and its personal data becomes unreadable even if the process stops midway. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { newTokenSecret } from '../../../../adapters/node/token-secret.ts';
import { accessTokens } from '../../../../core/access-token/evolve.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { emailClaims, usernameClaims } from '../../../../core/claim/evolve.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { RepositoryId, TrustRuleId } from '../../../../core/kernel/ids.ts';
import { VaultError } from '../../../../core/ports/vault.ts';
import { repositories } from '../../../../core/repository/evolve.ts';
import {
  changePassword,
  changePlan,
  createAccount,
  findAccount,
} from '../../../../core/use-cases/accounts/accounts.ts';
import { guardedBy } from '../../../../core/use-cases/callers/authenticate.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import { createRepository, findRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { sweepVault } from '../../../../core/use-cases/sweeping/sweep-vault.ts';
import { createAccessToken } from '../../../../core/use-cases/tokens/access-tokens.ts';
import {
  accepted,
  authenticate,
  codeOf,
  newAccount,
  newRepository,
  newToken,
  TOKEN_SETTINGS,
} from '../../../support/accounts.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { gate, watchLog } from '../../../support/watched-log.ts';

async function started() {
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const log = watchLog(createMemoryEventStore());
  const node = await startNode(log, { clock, vault });
  const account = await newAccount(node, 'ada');
  const { state } = await node.entities.get(accounts, account);
  assert.ok(state.status === 'open');
  const { emailRef, passwordHashRef } = state;
  const address = await vault.put(account, 'source-address', '192.0.2.1');
  const ids: RepositoryId[] = [];
  for (const name of ['one', 'two']) ids.push((await newRepository(node, account, name)).id);
  const token = await newToken(node, account);
  const erase = () => eraseAccount(node, CAUSE, account);
  /** Read by a node that has not read any event yet. */
  const isErased = async () => {
    const fresh = await startNode(log, { clock, vault });
    assert.equal(await authenticate(fresh, token.secret), null);
    assert.equal(await findAccount(fresh, 'ada'), null);
    for (const [n, id] of ids.entries()) {
      assert.equal(await findRepository(fresh, 'ada', n === 0 ? 'one' : 'two'), null);
      assert.equal((await fresh.entities.get(repositories, id)).state.status, 'closed');
    }
    assert.equal(await vault.get(account, 'email', emailRef), null);
    assert.equal(await vault.get(account, 'password-hash', passwordHashRef), null);
    assert.equal(await vault.get(account, 'source-address', address), null);
    await assert.rejects(vault.put(account, 'email', 'ada@example.org'), { code: 'account-erased' });
    const left = (await fresh.entities.get(accounts, account)).state;
    assert.ok(left.status === 'erased' && left.repositories.size === 0);
    assert.deepEqual((await fresh.entities.get(usernameClaims, 'ada')).state, { status: 'held', account });
    const claim = await vault.fingerprint('email', 'ada@example.org');
    assert.deepEqual((await fresh.entities.get(emailClaims, claim)).state, { status: 'free' });
  };
  const types = async () => (await log.readAll(LOG_START, 1_000)).map(({ type }) => type);
  const sweep = () => {
    const context = { ...node, references: vault.references, log: keepLog(), onSwept: () => undefined };
    return sweepVault(context, new AbortController().signal);
  };
  return { clock, vault, log, node, account, emailRef, token, erase, isErased, types, sweep };
}

const WANTED = { username: 'bob', email: 'ada@example.org', password: 'a long password', plan: 'FREE' } as const;

describe('An erased account', () => {
  test('is gone, with its repositories, tokens, address and secrets', async () => {
    const s = await started();
    const rule = s.node.ids.next<TrustRuleId>();
    const refusal = { rule, fault: 'claim-mismatch', claim: 'sub', found: 'repo:ada/x' } as const;
    await s.node.refusedExchanges.note(s.account, [refusal], s.clock.now());
    assert.deepEqual(await s.erase(), { repositories: 2, addressReleased: true });
    await s.isErased();
    assert.deepEqual(await s.node.refusedExchanges.list(s.account, rule), [], 'what strangers sent may name persons');
    const types = await s.types();
    const erased = types.indexOf('AccountErased');
    assert.ok(erased > 0 && erased < types.indexOf('RepositoryClosed'), 'the event comes before what follows from it');
  });

  test('does not change when it is erased again', async () => {
    const s = await started();
    await s.erase();
    const types = await s.types();
    assert.deepEqual(await s.erase(), { repositories: 0, addressReleased: true });
    await s.sweep();
    assert.deepEqual(await s.types(), types);
  });

  test('refuses every command', async () => {
    const s = await started();
    await s.erase();
    const origin = { account: s.account, cause: CAUSE };
    const wanted = { name: 'three', description: null, defaultBranch: null, storageBucketId: null };
    assert.equal(codeOf(await createRepository(s.node, origin, wanted)), 'account-not-found');
    const created = await createAccessToken(s.node, origin, TOKEN_SETTINGS, newTokenSecret());
    assert.equal(codeOf(created), 'account-not-found');
    assert.equal(codeOf(await changePlan(s.node, CAUSE, s.account, 'FREE')), 'account-not-found');
    assert.equal(
      codeOf(await changePassword(s.node, { account: s.account, cause: CAUSE }, 'another password')),
      'account-not-found',
    );
  });

  test('keeps its username claimed permanently, and releases its address', async () => {
    const s = await started();
    await s.erase();
    s.clock.advance(365 * 24 * 60 * 60_000);
    assert.equal(codeOf(await createAccount(s.node, CAUSE, { ...WANTED, username: 'ada' })), 'username-taken');
    accepted(await createAccount(s.node, CAUSE, WANTED));
  });

  test('keeps its username claimed even if its creation was interrupted before the confirmation', async () => {
    const s = await started();
    const dying = {
      ...s.node,
      failpoint: async (point: string) => {
        if (point === 'account-created') throw new Error('killed');
      },
    };
    const bob = { ...WANTED, email: 'bob@example.org' };
    await assert.rejects(createAccount(dying, CAUSE, bob), /killed/);
    const id = await findAccount(s.node, 'bob');
    assert.ok(id !== null);
    const dyingAgain = {
      ...s.node,
      failpoint: async () => {
        throw new Error('killed');
      },
    };
    await assert.rejects(eraseAccount(dyingAgain, CAUSE, id), /killed/);
    s.clock.advance(24 * 60 * 60_000);
    assert.equal(codeOf(await createAccount(s.node, CAUSE, { ...bob, email: 'other@example.org' })), 'username-taken');
    accepted(await eraseAccount(s.node, CAUSE, id));
    assert.equal(codeOf(await createAccount(s.node, CAUSE, bob)), 'username-taken');
    accepted(await createAccount(s.node, CAUSE, { ...bob, username: 'bobby' }));
  });

  test('stops a request of its token that was under way', async () => {
    const s = await started();
    const principal = await authenticate(s.node, s.token.secret);
    assert.ok(principal !== null);
    const guarding = guardedBy(s.node, principal, () => true);
    assert.ok('guards' in (await guarding()));
    await s.erase();
    assert.deepEqual(await guarding(), { refused: { code: 'token-no-longer-valid' } });
    assert.equal((await s.node.entities.get(accessTokens, s.token.id)).state.status, 'active');
  });

  test('stops a request on a node that has not yet received the erasure', async () => {
    const s = await started();
    const other = await startNode(s.log, { clock: s.clock, vault: s.vault });
    const principal = await authenticate(other, s.token.secret);
    assert.ok(principal !== null);
    const guarding = guardedBy(other, principal, () => true);
    await guarding();
    const held = gate();
    s.log.on.deliver = () => held.passed;
    await s.erase();
    // The first append conflicts, so the guard is read again.
    assert.deepEqual(await guarding(), { refused: { code: 'token-no-longer-valid' } });
    held.open();
  });

  test('is erased even if the record of its address was damaged, and the result reports that', async () => {
    const s = await started();
    const vault = {
      ...s.vault,
      get: async () => {
        throw new VaultError('record-tampered', 'changed');
      },
    };
    assert.deepEqual(await eraseAccount({ ...s.node, vault }, CAUSE, s.account), {
      repositories: 2,
      addressReleased: false,
    });
    assert.equal(await s.vault.get(s.account, 'email', s.emailRef), null);
  });

  test('is refused if it never existed', async () => {
    const s = await started();
    assert.equal(codeOf(await eraseAccount(s.node, CAUSE, s.node.ids.next())), 'account-not-found');
  });
});

describe('An interrupted erasure', () => {
  /** Stops the process before or after its nth append, or before it destroys the key. */
  const deaths: readonly (readonly [string, (s: Awaited<ReturnType<typeof started>>) => Promise<unknown>])[] = [
    [
      'right after its event',
      ({ node, account }) => {
        const failpoint = async (): Promise<void> => {
          throw new Error('killed');
        };
        return eraseAccount({ ...node, failpoint }, CAUSE, account);
      },
    ],
    [
      'before its key',
      ({ node, vault, account }) => {
        const eraseKey = async (): Promise<void> => {
          throw new Error('killed');
        };
        return eraseAccount({ ...node, vault: { ...vault, eraseAccount: eraseKey } }, CAUSE, account);
      },
    ],
    ...[2, 3, 4, 5].flatMap((n) =>
      (['append', 'appended'] as const).map(
        (when) =>
          [
            `${when === 'append' ? 'before' : 'after'} its append ${n}`,
            async ({ log, erase }: Awaited<ReturnType<typeof started>>) => {
              let appends = 0;
              log.on[when] = () => {
                appends += 1;
                if (appends === n) throw new Error('killed');
              };
              try {
                await erase();
              } finally {
                log.on[when] = undefined;
              }
            },
          ] as const,
      ),
    ),
  ];

  for (const [where, die] of deaths) {
    test(`${where} leaves the account erased, and is finished by the next request`, async () => {
      const s = await started();
      await assert.rejects(die(s), /killed/);
      const other = await startNode(s.log, { vault: s.vault, clock: s.clock });
      assert.equal(await authenticate(other, s.token.secret), null);
      accepted(await eraseAccount(other, CAUSE, s.account));
      await s.isErased();
    });

    test(`${where} is finished by the sweep of the vault`, async () => {
      const s = await started();
      await assert.rejects(die(s), /killed/);
      await s.sweep();
      await s.isErased();
    });
  }

  test('is not passed by a sweep that could not finish it', async () => {
    const s = await started();
    await s.sweep();
    await assert.rejects(deaths[0]?.[1](s) ?? Promise.resolve(), /killed/);
    s.log.on.append = () => {
      throw new Error('the log is away');
    };
    await assert.rejects(s.sweep(), /away/);
    s.log.on.append = undefined;
    await s.sweep();
    await s.isErased();
  });

  test('is finished only once when several callers finish it', async () => {
    const s = await started();
    await assert.rejects(deaths[0]?.[1](s) ?? Promise.resolve(), /killed/);
    await Promise.all([s.erase(), s.erase(), s.sweep()]);
    await s.isErased();
    const types = await s.types();
    for (const [type, times] of [
      ['AccountErased', 1],
      ['RepositoryDeleted', 2],
      ['RepositoryClosed', 2],
    ] as const) {
      assert.equal(types.filter((each) => each === type).length, times, type);
    }
  });
});
