/** What a person changes about who may enter: each change asks for the password, and belongs to its session. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { accounts } from '../../../../core/account/evolve.ts';
import { plusMs } from '../../../../core/kernel/ids.ts';
import { ACCOUNT_CLOSED_SPAN_MS, PASSWORD_LENGTH_MAX } from '../../../../core/kernel/limits.ts';
import {
  type Confirmation,
  changeOwnEmail,
  changeOwnPassword,
  closeAccount,
  confirmPassword,
  readOwnEmail,
  reopenAccount,
} from '../../../../core/use-cases/accounts/account-settings.ts';
import { changePassword, findAccount } from '../../../../core/use-cases/accounts/accounts.ts';
import { guardedBy, identifyPerson, type SessionOf } from '../../../../core/use-cases/callers/authenticate.ts';
import {
  SIGN_IN_FAILURES_LOGIN_MAX,
  SIGN_IN_FAILURES_PAIR_MAX,
} from '../../../../core/use-cases/callers/password-guesses.ts';
import { eraseDueAccounts } from '../../../../core/use-cases/erasing/erase-due-accounts.ts';
import { createRepository, findRepository } from '../../../../core/use-cases/repositories/repositories.ts';
import { type Origin, signIn } from '../../../../core/use-cases/signing-in/sign-in.ts';
import {
  accepted,
  authenticate,
  codeOf,
  codesOf,
  newAccount,
  newRepository,
  newToken,
} from '../../../support/accounts.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryPolicyMarks } from '../../../support/memory/delivery-store.ts';
import { createMemoryVault } from '../../../support/memory/vault.ts';
import { CAUSE, startNode } from '../../../support/node.ts';
import { createTestClock } from '../../../support/test-clock.ts';
import { watchLog } from '../../../support/watched-log.ts';

const PASSWORD = 'correct horse battery';
const RIGHT: Confirmation = { password: PASSWORD, address: '192.0.2.1', browser: null };
const WRONG: Confirmation = { ...RIGHT, password: 'wrong horse battery' };
const HERE: Origin = { requestId: 'request-2', address: '192.0.2.1', userAgent: null };

async function started() {
  const log = watchLog();
  const clock = createTestClock();
  const vault = createMemoryVault(clock.now);
  const marks = createMemoryPolicyMarks();
  const another = () => startNode(log, { clock, vault });
  const node = await another();
  const account = await newAccount(node, 'ada');
  const repository = await newRepository(node, account, 'tools');
  const token = await newToken(node, account);
  const enter = (password = PASSWORD) => signIn(node, HERE, { login: 'ada', password, knownBrowser: () => null });
  /** The origin of a change that is made in the session. */
  const within = async (session: SessionOf) => {
    const person = await identifyPerson(node, session);
    assert.ok(person?.status === 'open');
    return { account, cause: CAUSE, guarding: guardedBy(node, person.principal, () => true) };
  };
  const sweep = async (on = node): Promise<void> =>
    eraseDueAccounts({ ...on, marks, log: keepLog() }, new AbortController().signal);
  const statusOf = async () => (await node.entities.reload(accounts, account)).state.status;
  const first = accepted(await enter());
  return {
    ...{ log, clock, vault, another, node, account, repository, token },
    ...{ enter, within, sweep, statusOf, first, origin: await within(first) },
  };
}

describe('A change of the password, of the address and of the account', () => {
  test('is made only with the present password, and a wrong one changes nothing', async () => {
    const { node, log, origin, account } = await started();
    const { appends } = log.counts;
    for (const wrong of [
      WRONG,
      { ...WRONG, password: '' },
      { ...WRONG, password: 'x'.repeat(PASSWORD_LENGTH_MAX + 1) },
    ]) {
      assert.equal(codeOf(await changeOwnPassword(node, origin, wrong, 'another password')), 'password-wrong');
      assert.equal(codeOf(await changeOwnEmail(node, origin, wrong, 'ada@new.example')), 'password-wrong');
      assert.equal(codeOf(await closeAccount(node, origin, wrong)), 'password-wrong');
    }
    assert.equal(log.counts.appends, appends);
    accepted(await changeOwnEmail(node, origin, RIGHT, 'ada@new.example'));
    assert.equal(await readOwnEmail(node, account), 'ada@new.example');
  });

  test('lets somebody who found a signed-in browser guess ten times, and right passwords do not count', async () => {
    const { node, account } = await started();
    for (let n = 0; n < SIGN_IN_FAILURES_LOGIN_MAX; n += 1)
      assert.equal(await confirmPassword(node, account, RIGHT), null);
    for (let n = 0; n < SIGN_IN_FAILURES_PAIR_MAX; n += 1) {
      assert.deepEqual(await confirmPassword(node, account, WRONG), { refused: { code: 'password-wrong' } });
    }
    const refused = { refused: { code: 'too-many-attempts', waitSeconds: 900 } };
    assert.deepEqual(await confirmPassword(node, account, RIGHT), refused);
    assert.equal(await confirmPassword(node, account, { ...RIGHT, browser: 'browser-1' }), null);
  });

  test('is refused in a session that ended in between, although the password was right when it was typed', async () => {
    const { node, origin, account } = await started();
    accepted(await changePassword(node, { account, cause: CAUSE }, 'another password'));
    const now = { ...RIGHT, password: 'another password' };
    assert.equal(codeOf(await changeOwnPassword(node, origin, now, 'third password')), 'session-no-longer-valid');
    assert.equal(codeOf(await changeOwnEmail(node, origin, now, 'ada@new.example')), 'session-no-longer-valid');
    assert.equal(codeOf(await closeAccount(node, origin, now)), 'session-no-longer-valid');
  });
});

describe('A new password', () => {
  test('ends every other session and no token; its own session goes on in the new epoch', async () => {
    const { node, enter, first, within, token } = await started();
    const second = accepted(await enter());
    const { epoch } = accepted(await changeOwnPassword(node, await within(first), RIGHT, 'another password'));
    assert.equal(await identifyPerson(node, second), null);
    assert.equal(await identifyPerson(node, first), null);
    assert.equal((await identifyPerson(node, { ...first, epoch }))?.status, 'open');
    assert.ok((await authenticate(node, token.secret)) !== null);
    assert.equal(codeOf(await enter()), 'sign-in-failed');
    accepted(await enter('another password'));
  });

  test('is one of two that race in different sessions', async () => {
    const { node, another, first, within, origin } = await started();
    const other = await another();
    const person = await identifyPerson(other, first);
    assert.ok(person?.status === 'open');
    const theirs = { ...(await within(first)), guarding: guardedBy(other, person.principal, () => true) };
    const results = await Promise.all([
      changeOwnPassword(node, origin, RIGHT, 'one new password'),
      changeOwnPassword(other, theirs, RIGHT, 'two new passwords'),
    ]);
    assert.deepEqual(codesOf(results), { created: 1, 'session-no-longer-valid': 1 });
  });
});

describe('A closed account', () => {
  test('is gone for everybody, with its tokens, its sessions and its repositories', async () => {
    const { node, clock, origin, token, first, account } = await started();
    const { eraseAt } = accepted(await closeAccount(node, origin, RIGHT));
    assert.equal(eraseAt, plusMs(clock.now(), ACCOUNT_CLOSED_SPAN_MS));
    assert.equal(await authenticate(node, token.secret), null);
    assert.equal(await identifyPerson(node, first), null);
    assert.equal(await findAccount(node, 'ada'), null);
    assert.equal(await findRepository(node, 'ada', 'tools'), null);
    assert.equal(await readOwnEmail(node, account), null);
    assert.equal(codeOf(await changePassword(node, origin, 'another password')), 'account-not-found');
  });

  test('lets its person in to reopen it, and to nothing else', async () => {
    const { node, origin, enter, account, token } = await started();
    const { eraseAt } = accepted(await closeAccount(node, origin, RIGHT));
    assert.equal(codeOf(await enter('wrong horse battery')), 'sign-in-failed');
    const person = accepted(await enter());
    assert.deepEqual([person.status, person.epoch], ['closed', 1]);
    const { epoch } = person;
    const identified = await identifyPerson(node, person);
    assert.deepEqual(identified, { status: 'closed', account, username: 'ada', epoch, eraseAt });
    assert.deepEqual(await confirmPassword(node, account, RIGHT), { refused: { code: 'session-no-longer-valid' } });
    assert.deepEqual(await reopenAccount(node, { account, cause: CAUSE, epoch }), { reopened: true });
    assert.equal((await identifyPerson(node, person))?.status, 'open');
    assert.ok((await authenticate(node, token.secret)) !== null);
    assert.ok((await findRepository(node, 'ada', 'tools')) !== null);
  });

  test('is not reopened by a session from before it was closed, nor when it is open', async () => {
    const { node, origin, account, first, enter } = await started();
    const reopen = (epoch: number) => reopenAccount(node, { account, cause: CAUSE, epoch });
    assert.equal(codeOf(await reopen(first.epoch)), 'session-no-longer-valid');
    accepted(await closeAccount(node, origin, RIGHT));
    assert.equal(codeOf(await reopen(first.epoch)), 'session-no-longer-valid');
    accepted(await reopen(accepted(await enter()).epoch));
  });

  test('stops a request of its session that was under way on a node that does not know of it yet', async () => {
    const { node, log, another, origin, within, first } = await started();
    const other = await another();
    const pending = await within(first);
    log.on.deliver = () => new Promise(() => undefined);
    accepted(await closeAccount({ ...other, rateLimits: node.rateLimits }, origin, RIGHT));
    const wanted = { name: 'late', description: null, defaultBranch: null, storageBucketId: null };
    assert.equal(codeOf(await createRepository(node, pending, wanted)), 'session-no-longer-valid');
  });

  test('is erased when its time is over, not before, and then lets nobody in', async () => {
    const { node, clock, origin, enter, sweep, statusOf, account } = await started();
    accepted(await closeAccount(node, origin, RIGHT));
    const person = accepted(await enter());
    clock.advance(ACCOUNT_CLOSED_SPAN_MS - 1);
    await sweep();
    assert.equal(await statusOf(), 'closed');
    assert.equal((await identifyPerson(node, person))?.status, 'closed');
    clock.advance(1);
    assert.equal(await identifyPerson(node, person), null, 'from this instant on any node may erase it');
    assert.equal(codeOf(await enter()), 'sign-in-failed');
    const reopened = await reopenAccount(node, { account, cause: CAUSE, epoch: person.epoch });
    assert.equal(codeOf(reopened), 'session-no-longer-valid');
    await sweep();
    assert.equal(await statusOf(), 'erased');
    assert.equal(codeOf(await enter()), 'sign-in-failed');
  });

  test('is not erased once it was reopened, and gets its whole time when it is closed again', async () => {
    const { node, clock, origin, enter, within, sweep, statusOf, account } = await started();
    accepted(await closeAccount(node, origin, RIGHT));
    clock.advance(ACCOUNT_CLOSED_SPAN_MS / 2);
    const { epoch } = accepted(await enter());
    accepted(await reopenAccount(node, { account, cause: CAUSE, epoch }));
    clock.advance(ACCOUNT_CLOSED_SPAN_MS);
    await sweep();
    assert.equal(await statusOf(), 'open');
    accepted(await closeAccount(node, await within({ account, epoch }), RIGHT));
    await sweep();
    assert.equal(await statusOf(), 'closed');
    clock.advance(ACCOUNT_CLOSED_SPAN_MS);
    await sweep();
    assert.equal(await statusOf(), 'erased');
  });

  test('is erased once by sweeps of several nodes, and whole after a sweep that died in the middle', async () => {
    const { node, log, clock, vault, another, origin, sweep, statusOf, account } = await started();
    const { state } = await node.entities.get(accounts, account);
    assert.ok(state.status === 'open');
    accepted(await closeAccount(node, origin, RIGHT));
    clock.advance(ACCOUNT_CLOSED_SPAN_MS);
    const failpoint = async (): Promise<void> => {
      throw new Error('killed');
    };
    await assert.rejects(sweep({ ...node, failpoint }), /killed/);
    assert.equal(await statusOf(), 'erased');
    assert.equal(await vault.get(account, 'email', state.emailRef), 'ada@example.org');
    await Promise.all([sweep(await another()), sweep(), sweep()]);
    assert.equal(await vault.get(account, 'email', state.emailRef), null);
    const events = await log.readStream((await node.entities.get(accounts, account)).stream, {
      direction: 'forwards',
      limit: 100,
    });
    assert.equal(events.filter(({ type }) => type === 'AccountErased').length, 1);
    assert.equal(events.filter(({ type }) => type === 'RepositoryDeleted').length, 1);
  });
});
