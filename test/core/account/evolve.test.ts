/** The state that an account's events fold into. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../core/account/events.ts';
import { accounts } from '../../../core/account/evolve.ts';
import { sessionEpochOf } from '../../../core/account/state.ts';
import { plusMs } from '../../../core/kernel/ids.ts';
import {
  accountClosed,
  accountCreated,
  accountErased,
  accountReopened,
  emailChanged,
  passwordHashRef,
  repositoryCreated,
  repositoryDeleted,
  repositoryId,
  webhookCreated,
  webhookDeleted,
} from '../../support/account-history.ts';
import { FIRST_AT, given } from '../../support/fold.ts';

function open(...history: readonly AccountEvent[]) {
  const state = given(accounts, accountCreated, ...history);
  assert.ok(state.status === 'open');
  return state;
}

describe("An account's state", () => {
  test('holds its own facts, and has no repositories, webhooks, MFA tokens, storage buckets and trust rules at first', () => {
    const { repositories, repositoryNames, formerNames, webhooks, mfaTokens, storageBuckets, trustRules, ...own } =
      open();
    assert.deepEqual(own, {
      status: 'open',
      username: 'ada',
      emailRef: 'e'.repeat(64),
      passwordHashRef,
      plan: 'FREE',
      createdAt: FIRST_AT,
      defaultBucketId: null,
      deletedFormerNames: [],
      mfaChanges: 0,
      sessionsEnded: 0,
      formerEmail: null,
    });
    const sizes = [repositories, repositoryNames, formerNames, webhooks, mfaTokens, storageBuckets, trustRules].map(
      ({ size }) => size,
    );
    assert.deepEqual(sizes, [0, 0, 0, 0, 0, 0, 0]);
  });

  test('follows changes of plan and password', () => {
    const state = open(
      { type: 'PlanChanged', data: { plan: 'PRO' } },
      { type: 'PasswordChanged', data: { password_hash_ref: 'b'.repeat(64) } },
    );
    assert.deepEqual([state.plan, state.passwordHashRef], ['PRO', 'b'.repeat(64)]);
  });

  test('holds the new address, and what is left of the one before', () => {
    const state = open(emailChanged('1', null), emailChanged('2', 'c'.repeat(64)));
    assert.deepEqual(
      [state.emailRef, state.formerEmail],
      ['2'.repeat(64), { ref: '1'.repeat(64), claim: 'c'.repeat(64) }],
    );
  });

  test('begins a new session epoch with a change of the password and with a deletion, and with nothing else', () => {
    const passwordChanged: AccountEvent = { type: 'PasswordChanged', data: { password_hash_ref: 'b'.repeat(64) } };
    const epochs = [
      open(),
      open(emailChanged('1', null), { type: 'PlanChanged', data: { plan: 'PRO' } }),
      open(passwordChanged),
      open(passwordChanged, accountClosed, accountReopened),
    ].map(sessionEpochOf);
    assert.deepEqual(epochs, [0, 0, 1, 2]);
  });

  test('changes only in the facet that an event belongs to', () => {
    const before = open(repositoryCreated(1, 'Tools'));
    const after = open(repositoryCreated(1, 'Tools'), webhookCreated(1));
    assert.deepEqual([...after.repositories.keys()], [...before.repositories.keys()]);
    assert.equal(after.webhooks.size, 1);
  });

  test('keeps everything while it is closed, until it is reopened, and holds the time of its erasure', () => {
    const history = [repositoryCreated(1, 'Tools'), webhookCreated(1)];
    const before = open(...history);
    const state = given(accounts, accountCreated, ...history, accountClosed);
    assert.ok(state.status === 'closed');
    const { status: _, closedAt, eraseAt, ...contents } = state;
    assert.deepEqual([closedAt, eraseAt], [plusMs(FIRST_AT, 3_000), '2026-12-05T10:00:00.000Z']);
    const { status: __, ...expected } = before;
    assert.deepEqual(contents, { ...expected, sessionsEnded: 1 });
    assert.deepEqual(open(...history, accountClosed, accountReopened), { ...before, sessionsEnded: 1 });
    assert.equal(accounts.sizeBytes(state), accounts.sizeBytes(before));
    assert.equal(open(...history, accountClosed, accountReopened, webhookDeleted(1)).webhooks.size, 0);
  });

  test('still takes the end of an interrupted deletion and its erasure while it is closed', () => {
    const closed = [accountCreated, repositoryCreated(1, 'Tools'), accountClosed];
    const finished = given(accounts, ...closed, repositoryDeleted(1, 'Tools'));
    assert.ok(finished.status === 'closed' && finished.repositories.size === 0);
    const erased = given(accounts, ...closed, accountErased);
    assert.ok(erased.status === 'erased' && erased.repositories.size === 1);
  });

  test('keeps only what its erasure still needs after it was erased', () => {
    const state = given(
      accounts,
      accountCreated,
      repositoryCreated(1, 'Tools'),
      repositoryCreated(2, 'other'),
      webhookCreated(1),
      accountErased,
      repositoryDeleted(1, 'Tools'),
    );
    assert.ok(state.status === 'erased');
    assert.deepEqual(
      [state.username, state.emailRef, [...state.repositories.keys()]],
      ['ada', 'e'.repeat(64), [repositoryId(2)]],
    );
    const kept = ['emailRef', 'formerEmail', 'status', 'username'];
    const lists = ['deletedFormerNames', 'formerNames', 'repositories', 'repositoryNames'];
    assert.deepEqual(Object.keys(state).sort(), [...kept, ...lists].sort());
  });

  test('throws for an impossible history', () => {
    const planChanged: AccountEvent = { type: 'PlanChanged', data: { plan: 'PRO' } };
    assert.throws(() => given(accounts, accountErased), TypeError);
    assert.throws(() => given(accounts, accountCreated, accountErased, accountErased), TypeError);
    assert.throws(() => given(accounts, accountCreated, accountErased, planChanged), TypeError);
    assert.throws(() => given(accounts, accountCreated, accountReopened), TypeError);
    assert.throws(() => given(accounts, accountCreated, accountClosed, accountClosed), TypeError);
    assert.throws(() => given(accounts, accountCreated, accountErased, accountReopened), TypeError);
    assert.throws(() => given(accounts, repositoryCreated(1, 'Tools')), TypeError);
    assert.throws(() => given(accounts, accountCreated, accountErased, repositoryCreated(1, 'Tools')), TypeError);
    assert.throws(() => given(accounts, webhookCreated(1)), TypeError);
    assert.throws(() => given(accounts, { type: 'Abandoned', data: {} }, repositoryCreated(1, 'Tools')), TypeError);
  });
});
