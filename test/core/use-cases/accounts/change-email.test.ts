/** A change of an account's email address, even if the process stops between any two steps. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { emailClaims } from '../../../../core/claim/evolve.ts';
import { LOG_START } from '../../../../core/kernel/envelope.ts';
import type { AccountId } from '../../../../core/kernel/ids.ts';
import { EMAIL_LENGTH_MAX } from '../../../../core/kernel/limits.ts';
import type { VaultRef } from '../../../../core/kernel/vault-ref.ts';
import type { FailpointName } from '../../../../core/ports/failpoints.ts';
import { changePassword, createAccount } from '../../../../core/use-cases/accounts/accounts.ts';
import { changeEmail, finishEmailChange } from '../../../../core/use-cases/accounts/change-email.ts';
import { CLAIM_SPAN_MS } from '../../../../core/use-cases/accounts/claims.ts';
import { guardedBy, identifyPerson } from '../../../../core/use-cases/callers/authenticate.ts';
import { eraseAccount } from '../../../../core/use-cases/erasing/erase-account.ts';
import { sweepVault } from '../../../../core/use-cases/sweeping/sweep-vault.ts';
import { accepted, codeOf, codesOf, EACH_SPELLING_ITS_OWN, newAccount } from '../../../support/accounts.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode, type TestNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

const OLD = 'ada@example.org';
const NEW = 'ada@new.example';

async function started() {
  const log = watchLog();
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const another = () => startNode(log, { clock, vault });
  const node = await another();
  const account = await newAccount(node, 'ada');
  const change = (email: string, on: TestNode = node, of: AccountId = account) =>
    changeEmail(on, { account: of, cause: CAUSE, guarding: async () => ({ guards: [] }) }, email);
  const emailOf = async (id: AccountId = account): Promise<string | null> => {
    const { state } = await node.entities.reload(accounts, id);
    assert.ok(state.status === 'open' || state.status === 'closed');
    return vault.get(id, 'email', state.emailRef);
  };
  const claimOf = async (email: string) =>
    (await node.entities.reload(emailClaims, await vault.fingerprint('email', email.toLowerCase()))).state;
  const refOf = async (): Promise<VaultRef> => {
    const { state } = await node.entities.reload(accounts, account);
    assert.ok(state.status === 'open');
    return state.emailRef;
  };
  const sweep = () => {
    const context = { ...node, references: vault.references, log: keepLog(), onSwept: () => undefined };
    return sweepVault(context, new AbortController().signal);
  };
  const types = async () => (await log.readAll(LOG_START, 1_000)).map(({ type }) => type);
  const create = (username: string, email: string, on: TestNode = node) =>
    createAccount(on, CAUSE, { username, email, password: 'a long password', plan: 'FREE' });
  return { log, clock, vault, another, node, account, change, emailOf, claimOf, refOf, sweep, types, create };
}

type Parts = Awaited<ReturnType<typeof started>>;

/** The account has this address for good, and nothing is left of the other one. */
async function isSettled({ account, emailOf, claimOf }: Parts, has: string, former: string): Promise<void> {
  assert.equal(await emailOf(), has);
  assert.deepEqual(await claimOf(has), { status: 'held', account });
  assert.deepEqual(await claimOf(former), { status: 'free' });
}

describe('A new address', () => {
  test("takes the former one's place, which is then free and out of the vault", async () => {
    const parts = await started();
    const before = await parts.refOf();
    accepted(await parts.change(NEW));
    await isSettled(parts, NEW, OLD);
    assert.equal(await parts.vault.get(parts.account, 'email', before), null);
    accepted(await parts.create('bob', OLD));
  });

  test('must be an address, and one that nobody else has in any case of letters', async () => {
    const parts = await started();
    const { change, create, log } = parts;
    accepted(await create('bob', 'Bob@Example.org'));
    const { appends } = log.counts;
    for (const email of ['', 'ada', 'a b@example.org', `${'x'.repeat(EMAIL_LENGTH_MAX)}@example.org`]) {
      assert.equal(codeOf(await change(email)), 'email-invalid');
    }
    assert.equal(codeOf(await change('bOB@example.org')), 'email-taken');
    assert.equal(log.counts.appends, appends);
    assert.equal(await parts.emailOf(), OLD);
  });

  test('that the account has already changes nothing, and one that differs only in case keeps its claim', async () => {
    const parts = await started();
    const before = await parts.types();
    accepted(await parts.change(OLD));
    assert.deepEqual(await parts.types(), before);
    const ref = await parts.refOf();
    accepted(await parts.change('Ada@Example.org'));
    assert.equal(await parts.emailOf(), 'Ada@Example.org');
    assert.equal(await parts.vault.get(parts.account, 'email', ref), null);
    assert.deepEqual(await parts.claimOf(OLD), { status: 'held', account: parts.account });
    accepted(await parts.change(OLD));
    assert.equal(await parts.emailOf(), OLD);
  });

  test('may be given up for the former one again, as often as its person likes', async () => {
    const parts = await started();
    for (let n = 0; n < 3; n += 1) {
      accepted(await parts.change(NEW));
      await isSettled(parts, NEW, OLD);
      accepted(await parts.change(OLD));
      await isSettled(parts, OLD, NEW);
    }
    await parts.sweep();
    await isSettled(parts, OLD, NEW);
  });

  test('appears in no event', async () => {
    const parts = await started();
    accepted(await parts.change(NEW));
    const events = await parts.log.readAll(LOG_START, 1_000);
    const text = JSON.stringify(events.map(({ position: _position, ...event }) => event));
    for (const secret of [OLD, NEW]) assert.equal(text.includes(secret), false);
  });

  test('goes to only one of many accounts that want it at the same time', async () => {
    const parts = await started();
    const { node, another, change } = parts;
    const ids = [parts.account, await newAccount(node, 'bob'), await newAccount(node, 'eve')];
    const nodes = await Promise.all(ids.map(() => another()));
    const results = await Promise.all(ids.map((id, n) => change(NEW, nodes[n], id)));
    assert.deepEqual(codesOf(results), { created: 1, 'email-taken': 2 });
  });

  test('is one of several that race on two nodes: the account keeps one, and holds no other', async () => {
    const parts = await started();
    const other = await parts.another();
    await Promise.all([parts.change('one@new.example'), parts.change('two@new.example', other), parts.change(NEW)]);
    await finishEmailChange(parts.node, CAUSE, parts.account);
    const email = await parts.emailOf();
    assert.ok(email !== null);
    for (const each of [OLD, NEW, 'one@new.example', 'two@new.example']) {
      const claim = await parts.claimOf(each);
      assert.equal(claim.status, each === email ? 'held' : 'free', each);
    }
  });

  test('is not taken in a session that ended while the change was under way', async () => {
    const { node, account, emailOf } = await started();
    const person = await identifyPerson(node, { account, epoch: 0 });
    assert.ok(person?.status === 'open');
    const guarding = guardedBy(node, person.principal, () => true);
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point !== 'email-claimed') return;
      accepted(await changePassword(node, { account, cause: CAUSE }, 'another password'));
    };
    const changed = await changeEmail({ ...node, failpoint }, { account, cause: CAUSE, guarding }, NEW);
    assert.equal(codeOf(changed), 'session-no-longer-valid');
    assert.equal(await emailOf(), OLD);
  });
});

describe('A change of the address that is interrupted', () => {
  const points: readonly FailpointName[] = [
    'email-claimed',
    'email-changed',
    'email-claim-confirmed',
    'email-record-removed',
  ];
  /** Stops the process before or after its nth append, before its nth use of the vault, or at a failpoint. */
  const deaths: readonly (readonly [string, (parts: Parts) => Promise<unknown>])[] = [
    ...points.map(
      (dead) =>
        [
          `at ${dead}`,
          ({ node, change }: Parts) => {
            const failpoint = async (point: FailpointName): Promise<void> => {
              if (point === dead) throw new Error('killed');
            };
            return change(NEW, { ...node, failpoint });
          },
        ] as const,
    ),
    ...[1, 2, 3, 4].flatMap((n) =>
      (['append', 'appended'] as const).map(
        (when) =>
          [
            `${when === 'append' ? 'before' : 'after'} its append ${n}`,
            async ({ log, change }: Parts) => {
              let appends = 0;
              log.on[when] = () => {
                appends += 1;
                if (appends === n) throw new Error('killed');
              };
              try {
                await change(NEW);
              } finally {
                log.on[when] = undefined;
              }
            },
          ] as const,
      ),
    ),
    ...(['put', 'delete'] as const).map(
      (call) =>
        [
          `at ${call} of the vault`,
          ({ node, change }: Parts) => {
            const killed = async (): Promise<never> => {
              throw new Error('killed');
            };
            return change(NEW, { ...node, vault: { ...node.vault, [call]: killed } });
          },
        ] as const,
    ),
  ];

  for (const [where, die] of deaths) {
    test(`${where} leaves one address or the other whole, and the sweep finishes it`, async () => {
      const parts = await started();
      await assert.rejects(die(parts), /killed/);
      const changed = (await parts.emailOf()) === NEW;
      assert.equal((await parts.claimOf(changed ? NEW : OLD)).status === 'free', false);
      await parts.sweep();
      if (changed) {
        await isSettled(parts, NEW, OLD);
      } else {
        assert.equal(await parts.emailOf(), OLD);
        assert.deepEqual(await parts.claimOf(OLD), { status: 'held', account: parts.account });
      }
    });

    test(`${where} is done by the next try, and its address is no other account's before that`, async () => {
      const parts = await started();
      await assert.rejects(die(parts), /killed/);
      const other = await parts.another();
      accepted(await parts.change(NEW, other));
      await finishEmailChange(other, CAUSE, parts.account);
      await isSettled(parts, NEW, OLD);
      assert.equal(codeOf(await parts.create('bob', NEW, other)), 'email-taken');
    });

    test(`${where} does not stand in the way of a third address`, async () => {
      const parts = await started();
      await assert.rejects(die(parts), /killed/);
      const other = await parts.another();
      accepted(await parts.change('third@new.example', other));
      parts.clock.advance(CLAIM_SPAN_MS + 1);
      accepted(await parts.create('bob', NEW, other));
      accepted(await parts.create('eve', OLD, other));
      assert.equal(codeOf(await parts.create('mallory', 'third@new.example', other)), 'email-taken');
      assert.equal(await parts.emailOf(), 'third@new.example');
    });

    test(`${where} leaves no address claimed after the account is erased`, async () => {
      const parts = await started();
      await assert.rejects(die(parts), /killed/);
      const other = await parts.another();
      accepted(await eraseAccount(other, CAUSE, parts.account));
      parts.clock.advance(CLAIM_SPAN_MS + 1);
      accepted(await parts.create('bob', NEW, other));
      accepted(await parts.create('eve', OLD, other));
    });
  }

  test('after its claim leaves the address to others when the claim has lapsed, and then the late event is refused', async () => {
    const parts = await started();
    const other = await parts.another();
    let late: Promise<unknown> = Promise.resolve();
    const paused = Promise.withResolvers<void>();
    const resumed = Promise.withResolvers<void>();
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point !== 'email-claimed') return;
      paused.resolve();
      await resumed.promise;
    };
    late = parts.change(NEW, { ...parts.node, failpoint });
    await paused.promise;
    assert.equal(codeOf(await parts.create('bob', NEW, other)), 'email-taken');
    parts.clock.advance(CLAIM_SPAN_MS + 1);
    const { id } = accepted(await parts.create('bob', NEW, other));
    resumed.resolve();
    assert.equal(codeOf((await late) as object), 'email-taken');
    assert.equal(await parts.emailOf(), OLD);
    assert.deepEqual(await parts.claimOf(NEW), { status: 'held', account: id });
  });

  test('is not robbed of its claim by a takeover that lost the race against its event', async () => {
    const parts = await started();
    const other = await parts.another();
    const paused = Promise.withResolvers<void>();
    const resumed = Promise.withResolvers<void>();
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point === 'email-changed') throw new Error('killed');
      if (point !== 'email-claimed') return;
      paused.resolve();
      await resumed.promise;
    };
    const late = parts.change(NEW, { ...parts.node, failpoint });
    late.catch(() => undefined);
    await paused.promise;
    parts.clock.advance(CLAIM_SPAN_MS + 1);
    // Just before the takeover's append, the change is appended after all; its process dies right after.
    parts.log.on.append = async ({ stream, events }) => {
      if (!stream.startsWith('email-') || events[0]?.type !== 'Claimed') return;
      parts.log.on.append = undefined;
      resumed.resolve();
      await assert.rejects(late, /killed/);
    };
    assert.equal(codeOf(await parts.create('bob', NEW, other)), 'email-taken');
    assert.equal(await parts.emailOf(), NEW);
    assert.deepEqual(await parts.claimOf(NEW), { status: 'held', account: parts.account });
  });

  /** A node that finishes a change to NEW, and stops before each append that releases the former address. */
  async function slowFinisher(parts: Parts) {
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point === 'email-record-removed') throw new Error('killed');
    };
    await assert.rejects(parts.change(NEW, { ...parts.node, failpoint }), /killed/);
    const log = watchLog(parts.log);
    const slow = await startNode(log, { clock: parts.clock, vault: parts.vault });
    const gates = [Promise.withResolvers<() => void>(), Promise.withResolvers<() => void>()];
    let stops = 0;
    log.on.append = async ({ events }) => {
      if (events[0]?.type !== 'Released') return;
      await new Promise<void>((resume) => gates[stops++]?.resolve(resume));
    };
    const finishing = finishEmailChange(slow, CAUSE, parts.account);
    const [first, second] = gates;
    assert.ok(first !== undefined && second !== undefined);
    return { finishing, first: await first.promise, second: second.promise };
  }

  test('is not finished by a node that is late, when its person has gone back to the former address', async () => {
    const parts = await started();
    const { finishing, first } = await slowFinisher(parts);
    accepted(await parts.change(OLD));
    first();
    await finishing;
    await isSettled(parts, OLD, NEW);
  });

  test('is not finished by a node that is late, at the very moment when its person goes back', async () => {
    const parts = await started();
    const { finishing, first, second } = await slowFinisher(parts);
    const claimed = Promise.withResolvers<void>();
    const resumed = Promise.withResolvers<void>();
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point === 'email-changed') throw new Error('killed');
      if (point !== 'email-claimed') return;
      claimed.resolve();
      await resumed.promise;
    };
    const back = parts.change(OLD, { ...parts.node, failpoint });
    back.catch(() => undefined);
    await claimed.promise;
    // The late node finds the address claimed again by the same account, and not yet taken.
    first();
    const release = await second;
    resumed.resolve();
    await assert.rejects(back, /killed/);
    release();
    await finishing;
    assert.equal(await parts.emailOf(), OLD);
    assert.equal((await parts.claimOf(OLD)).status, 'pending');
    await parts.sweep();
    await isSettled(parts, OLD, NEW);
  });
});

describe('An address of an international domain', () => {
  const ASCII = 'bob@xn--mnchen-3ya.example';
  const UNICODE = 'bob@münchen.example';
  const WIDE = 'bob@ｍünchen.example';

  /** An account whose address was claimed as it was typed. */
  async function claimedBefore(email: string) {
    const parts = await started();
    const older = { ...parts.node, spellDomain: EACH_SPELLING_ITS_OWN };
    const { id } = accepted(await parts.create('bob', email, older));
    assert.deepEqual(await parts.claimOf(email), { status: 'held', account: id });
    return { ...parts, older, bob: id, changeBob: (to: string) => parts.change(to, parts.node, id) };
  }

  /** Nobody can have either spelling before the account gives the address up, and then anybody can. */
  async function isItsUntilGivenUp(
    { create, emailOf, changeBob, bob, claimOf }: Awaited<ReturnType<typeof claimedBefore>>,
    has: string,
  ): Promise<void> {
    assert.equal(await emailOf(bob), has);
    assert.equal(codeOf(await create('eve', UNICODE)), 'email-taken');
    assert.equal(codeOf(await create('eve', ASCII)), 'email-taken');
    accepted(await changeBob(NEW));
    for (const each of [ASCII, UNICODE, WIDE]) assert.deepEqual(await claimOf(each), { status: 'free' }, each);
    accepted(await create('eve', UNICODE));
    assert.equal(codeOf(await changeBob(ASCII)), 'email-taken');
  }

  for (const before of [UNICODE, ASCII]) {
    test(`that was claimed as ${before} before is its account's in either spelling, until that changes it`, async () => {
      const parts = await claimedBefore(before);
      await isItsUntilGivenUp(parts, before);
    });

    test(`that was claimed as ${before} before keeps its claim when only its spelling changes`, async () => {
      const parts = await claimedBefore(before);
      const after = before === ASCII ? UNICODE : ASCII;
      for (const next of [after, before, WIDE, after]) {
        accepted(await parts.changeBob(next));
        assert.equal(await parts.emailOf(parts.bob), next);
        assert.deepEqual(await parts.claimOf(before), { status: 'held', account: parts.bob });
        assert.deepEqual(await parts.claimOf(after), { status: 'free' });
      }
      await parts.sweep();
      await isItsUntilGivenUp(parts, after);
    });

    test(`that was claimed as ${before} before is free in both spellings once its account is erased`, async () => {
      const { node, bob, create } = await claimedBefore(before);
      accepted(await eraseAccount(node, CAUSE, bob));
      accepted(await create('eve', before === ASCII ? UNICODE : ASCII));
    });
  }

  test('that was claimed in a form that no spelling leads to is claimed again when its spelling changes', async () => {
    const parts = await claimedBefore(WIDE);
    accepted(await parts.changeBob(UNICODE));
    assert.deepEqual(await parts.claimOf(ASCII), { status: 'held', account: parts.bob });
    assert.deepEqual(await parts.claimOf(WIDE), { status: 'free' });
    await isItsUntilGivenUp(parts, UNICODE);
  });

  test('whose spelling changes keeps the claim that it has, if the process stops once the new one is claimed', async () => {
    const parts = await claimedBefore(WIDE);
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point === 'email-claimed') throw new Error('killed');
    };
    await assert.rejects(parts.change(ASCII, { ...parts.node, failpoint }, parts.bob), /killed/);
    await finishEmailChange(parts.node, CAUSE, parts.bob);
    assert.deepEqual(await parts.claimOf(WIDE), { status: 'held', account: parts.bob });
    assert.equal((await parts.claimOf(ASCII)).status, 'pending');
    accepted(await parts.changeBob(NEW));
    assert.deepEqual(await parts.claimOf(WIDE), { status: 'free' });
    parts.clock.advance(CLAIM_SPAN_MS + 1);
    accepted(await parts.create('eve', UNICODE));
  });

  test('is one address to two accounts that change to its two spellings at the same time', async () => {
    const parts = await started();
    const [bob, eve] = [await newAccount(parts.node, 'bob'), await newAccount(parts.node, 'eve')];
    const other = await parts.another();
    const results = await Promise.all([parts.change(ASCII, parts.node, bob), parts.change(UNICODE, other, eve)]);
    assert.deepEqual(codesOf(results), { created: 1, 'email-taken': 1 });
  });

  test('is not claimed while an older version claims it in the other spelling', async () => {
    const parts = await started();
    const older = { ...(await parts.another()), spellDomain: EACH_SPELLING_ITS_OWN };
    parts.log.on.append = async ({ stream, events }) => {
      if (!stream.startsWith('email-') || events[0]?.type !== 'Claimed') return;
      parts.log.on.append = undefined;
      accepted(await parts.create('bob', UNICODE, older));
    };
    assert.equal(codeOf(await parts.create('eve', ASCII)), 'email-taken');
  });

  test('that an older version claimed for an account which never came is free after ten minutes', async () => {
    const parts = await started();
    const older = { ...(await parts.another()), spellDomain: EACH_SPELLING_ITS_OWN };
    const paused = Promise.withResolvers<void>();
    const resumed = Promise.withResolvers<void>();
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point !== 'account-email-claimed') return;
      paused.resolve();
      await resumed.promise;
    };
    const late = parts.create('bob', UNICODE, { ...older, failpoint });
    await paused.promise;
    assert.equal(codeOf(await parts.create('eve', ASCII)), 'email-taken');
    parts.clock.advance(CLAIM_SPAN_MS + 1);
    accepted(await parts.create('eve', ASCII));
    resumed.resolve();
    assert.equal(codeOf(await late), 'username-taken');
  });

  test('that an older version gave to an account without a confirmation of the claim stays with it', async () => {
    const parts = await started();
    const failpoint = async (point: FailpointName): Promise<void> => {
      if (point === 'account-username-confirmed') throw new Error('killed');
    };
    const older = { ...parts.node, failpoint, spellDomain: EACH_SPELLING_ITS_OWN };
    await assert.rejects(parts.create('bob', UNICODE, older), /killed/);
    parts.clock.advance(CLAIM_SPAN_MS + 1);
    assert.equal(codeOf(await parts.create('eve', ASCII)), 'email-taken');
    assert.equal((await parts.claimOf(UNICODE)).status, 'held');
  });
});
