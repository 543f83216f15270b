/** The decisions of the account itself. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountCommand } from '../../../core/account/commands.ts';
import { decideAccount } from '../../../core/account/decide.ts';
import type { AccountEvent } from '../../../core/account/events.ts';
import { accounts } from '../../../core/account/evolve.ts';
import { timestamp } from '../../../core/kernel/ids.ts';
import { vaultRef } from '../../../core/kernel/vault-ref.ts';
import {
  accountClosed,
  accountCreated,
  accountErased,
  emailRef,
  passwordHashRef,
} from '../../support/account-history.ts';
import { given } from '../../support/fold.ts';

/** Returns the events, or the code of the refusal. */
function decide(history: readonly AccountEvent[], command: AccountCommand) {
  const decision = decideAccount(given(accounts, ...history), command);
  return 'refused' in decision ? decision.refused.code : decision.events;
}

describe('An account', () => {
  const command: AccountCommand = { type: 'CreateAccount', username: 'ada', emailRef, passwordHashRef, plan: 'FREE' };

  test('is created only once', () => {
    assert.deepEqual(decide([], command), [accountCreated]);
    assert.equal(decide([accountCreated], command), 'username-taken');
  });

  test('cannot be created after it was abandoned', () => {
    assert.deepEqual(decide([], { type: 'AbandonAccount' }), [{ type: 'Abandoned', data: {} }]);
    const abandoned: AccountEvent = { type: 'Abandoned', data: {} };
    assert.equal(decide([abandoned], command), 'username-taken');
    assert.deepEqual(decide([abandoned], { type: 'AbandonAccount' }), []);
  });

  test('cannot be abandoned after it was created', () => {
    assert.deepEqual(decide([accountCreated], { type: 'AbandonAccount' }), []);
  });

  test('changes its plan and its password; choosing the current plan changes nothing', () => {
    assert.deepEqual(decide([accountCreated], { type: 'ChangePlan', plan: 'PRO' }), [
      { type: 'PlanChanged', data: { plan: 'PRO' } },
    ]);
    assert.deepEqual(decide([accountCreated], { type: 'ChangePlan', plan: 'FREE' }), []);
    const other = vaultRef('b'.repeat(64));
    assert.deepEqual(decide([accountCreated], { type: 'ChangePassword', passwordHashRef: other }), [
      { type: 'PasswordChanged', data: { password_hash_ref: other } },
    ]);
  });

  test('changes its address', () => {
    const data = { email_ref: 'b'.repeat(64), previous_claim: 'c'.repeat(64) };
    const command = { type: 'ChangeEmail', emailRef: vaultRef('b'.repeat(64)), previousClaim: 'c'.repeat(64) } as const;
    assert.deepEqual(decide([accountCreated], command), [{ type: 'EmailChanged', data }]);
    assert.equal(decide([accountCreated, accountClosed], command), 'account-not-found');
    assert.equal(decide([], command), 'account-not-found');
  });

  test('is closed once, and reopened in the epoch of its closing until the instant at which it is to be erased', () => {
    const close = { type: 'CloseAccount', eraseAt: timestamp('2026-12-05T10:00:00.000Z') } as const;
    assert.deepEqual(decide([accountCreated], close), [accountClosed]);
    assert.equal(decide([accountCreated, accountClosed], close), 'account-not-found');
    const history = [accountCreated, accountClosed];
    const reopen = (epoch: number, now: string) =>
      decide(history, { type: 'ReopenAccount', epoch, now: timestamp(now) });
    assert.deepEqual(reopen(1, '2026-12-05T09:59:59.999Z'), [{ type: 'AccountReopened', data: {} }]);
    assert.equal(reopen(1, '2026-12-05T10:00:00.000Z'), 'session-no-longer-valid');
    assert.equal(reopen(0, '2026-12-05T09:59:59.999Z'), 'session-no-longer-valid');
  });

  test('is erased by the sweep only when it is closed and its time is over', () => {
    const due = { type: 'EraseDueAccount', now: timestamp('2026-12-05T10:00:00.000Z') } as const;
    assert.deepEqual(decide([accountCreated, accountClosed], due), [accountErased]);
    const early = { ...due, now: timestamp('2026-12-05T09:59:59.999Z') };
    assert.equal(decide([accountCreated, accountClosed], early), 'account-not-found');
    assert.equal(decide([accountCreated], due), 'account-not-found');
    assert.deepEqual(decide([accountCreated, accountClosed, accountErased], early), []);
  });

  test('is erased once, and a repeated erasure adds no event', () => {
    const erased: AccountEvent = { type: 'AccountErased', data: {} };
    assert.deepEqual(decide([accountCreated], { type: 'EraseAccount' }), [erased]);
    assert.deepEqual(decide([accountCreated, erased], { type: 'EraseAccount' }), []);
    assert.equal(decide([], { type: 'EraseAccount' }), 'account-not-found');
    assert.equal(decide([{ type: 'Abandoned', data: {} }], { type: 'EraseAccount' }), 'account-not-found');
  });

  test('refuses every command but its erasure while it is closed', () => {
    const history = [accountCreated, accountClosed];
    assert.deepEqual(decide(history, { type: 'EraseAccount' }), [accountErased]);
    assert.deepEqual(decide(history, { type: 'AbandonAccount' }), []);
    assert.equal(decide(history, command), 'username-taken');
    assert.equal(decide(history, { type: 'ChangePlan', plan: 'PRO' }), 'account-not-found');
    assert.equal(decide(history, { type: 'ChangePassword', passwordHashRef }), 'account-not-found');
  });

  test('refuses every command after it was erased', () => {
    const history = [accountCreated, accountErased];
    assert.equal(decide(history, command), 'username-taken');
    assert.deepEqual(decide(history, { type: 'AbandonAccount' }), []);
    for (const refused of [
      { type: 'ChangePlan', plan: 'PRO' },
      { type: 'ChangePassword', passwordHashRef },
    ] satisfies AccountCommand[]) {
      assert.equal(decide(history, refused), 'account-not-found');
    }
  });

  test('refuses every command if it does not exist or was abandoned', () => {
    for (const history of [[], [{ type: 'Abandoned', data: {} } satisfies AccountEvent]]) {
      for (const refused of [
        { type: 'ChangePlan', plan: 'PRO' },
        { type: 'ChangePassword', passwordHashRef },
      ] satisfies AccountCommand[]) {
        assert.equal(decide(history, refused), 'account-not-found');
      }
    }
  });
});
