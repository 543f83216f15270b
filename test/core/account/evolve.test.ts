/** What an account's history amounts to. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AccountEvent } from '../../../core/account/events.ts';
import { accounts } from '../../../core/account/evolve.ts';
import { plusMs, type RepositoryId, uuid, type WebhookId } from '../../../core/kernel/ids.ts';
import { FIRST_AT, given } from '../../support/fold.ts';

const id: RepositoryId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000001');
const created: AccountEvent = {
  type: 'AccountCreated',
  data: { username: 'ada', email_ref: 'e'.repeat(64), password_hash_ref: 'a'.repeat(64), plan: 'FREE' },
};
const repositoryCreated: AccountEvent = {
  type: 'RepositoryCreated',
  data: { repository_id: id, name: 'Tools', description: null, default_branch: 'trunk', storage_bucket_id: null },
};

function open(...history: readonly AccountEvent[]) {
  const state = given(accounts, created, ...history);
  assert.ok(state.status === 'open');
  return state;
}

describe("An account's state", () => {
  test('holds its own facts and its repositories by id and by name', () => {
    const state = open(repositoryCreated);
    assert.equal(state.username, 'ada');
    assert.equal(state.plan, 'FREE');
    assert.equal(state.createdAt, FIRST_AT);
    assert.deepEqual(state.repositories.get(id), {
      id,
      name: 'Tools',
      description: null,
      initialDefaultBranch: 'trunk',
      storageBucketId: null,
      createdAt: plusMs(FIRST_AT, 1_000),
    });
    assert.equal(state.repositoryNames.get('tools'), id);
  });

  test('follows changes of plan, password and descriptions', () => {
    const state = open(
      repositoryCreated,
      { type: 'PlanChanged', data: { plan: 'PRO' } },
      { type: 'PasswordChanged', data: { password_hash_ref: 'b'.repeat(64) } },
      { type: 'RepositoryDescribed', data: { repository_id: id, description: 'All of them' } },
    );
    assert.equal(state.plan, 'PRO');
    assert.equal(state.passwordHashRef, 'b'.repeat(64));
    assert.equal(state.repositories.get(id)?.description, 'All of them');
    assert.equal(state.repositories.size, 1);
  });

  test('forgets a deleted repository whole', () => {
    const state = open(repositoryCreated, { type: 'RepositoryDeleted', data: { repository_id: id, name: 'Tools' } });
    assert.equal(state.repositories.size, 0);
    assert.equal(state.repositoryNames.size, 0);
    assert.equal(state.repositories.weight, 0);
  });

  test('once erased keeps what its erasure still has to do, and nothing else', () => {
    const [described, other] = [repositoryCreated, uuid<RepositoryId>('0190f3e2-7c1a-7b4e-9a35-00000000000f')];
    const state = given(
      accounts,
      created,
      described,
      { ...repositoryCreated, data: { ...repositoryCreated.data, repository_id: other, name: 'other' } },
      { type: 'AccountErased', data: {} },
      { type: 'RepositoryDeleted', data: { repository_id: id, name: 'Tools' } },
    );
    assert.ok(state.status === 'erased');
    assert.deepEqual(
      [state.username, state.emailRef, [...state.repositories.keys()]],
      ['ada', 'e'.repeat(64), [other]],
    );
    assert.deepEqual(Object.keys(state).sort(), ['emailRef', 'repositories', 'status', 'username']);
  });

  test('follows its webhooks: a rotation keeps the secret before, another URL keeps none', () => {
    const webhook: WebhookId = uuid('0190f3e2-7c1a-7b4e-9a35-000000000002');
    const webhook_id = webhook;
    const until = '2026-11-22T10:00:00.000Z';
    const hookCreated: AccountEvent = {
      type: 'WebhookCreated',
      data: { webhook_id, url_ref: '1'.repeat(64), secret_ref: '2'.repeat(64), events: ['push'], active: true },
    };
    const rotated = (digit: string): AccountEvent => ({
      type: 'WebhookSecretRotated',
      data: { webhook_id, secret_ref: digit.repeat(64), previous_valid_until: until },
    });
    const first = plusMs(FIRST_AT, 1_000);
    assert.deepEqual(open(hookCreated).webhooks.get(webhook), {
      id: webhook,
      urlRef: '1'.repeat(64),
      secretRef: '2'.repeat(64),
      previousSecret: null,
      events: ['push'],
      active: true,
      createdAt: first,
      updatedAt: first,
    });
    const twice = open(hookCreated, rotated('3'), rotated('4')).webhooks.get(webhook);
    assert.equal(twice?.secretRef, '4'.repeat(64));
    assert.deepEqual(twice.previousSecret, { ref: '3'.repeat(64), validUntil: until });
    const changed = open(
      hookCreated,
      rotated('3'),
      { type: 'WebhookUrlChanged', data: { webhook_id, url_ref: '5'.repeat(64), secret_ref: '6'.repeat(64) } },
      { type: 'WebhookEventsChanged', data: { webhook_id, events: ['ping'] } },
      { type: 'WebhookDeactivated', data: { webhook_id } },
    );
    assert.deepEqual(changed.webhooks.get(webhook), {
      id: webhook,
      urlRef: '5'.repeat(64),
      secretRef: '6'.repeat(64),
      previousSecret: null,
      events: ['ping'],
      active: false,
      createdAt: first,
      updatedAt: plusMs(FIRST_AT, 5_000),
    });
    assert.equal(open(hookCreated, { type: 'WebhookDeleted', data: { webhook_id } }).webhooks.size, 0);
    assert.throws(() => open({ type: 'WebhookDeleted', data: { webhook_id } }), TypeError);
  });

  test('refuses a history that cannot be', () => {
    const erased: AccountEvent = { type: 'AccountErased', data: {} };
    assert.throws(() => given(accounts, erased), TypeError);
    assert.throws(() => given(accounts, created, erased, erased), TypeError);
    assert.throws(() => given(accounts, created, erased, { type: 'PlanChanged', data: { plan: 'PRO' } }), TypeError);
    assert.throws(() => given(accounts, repositoryCreated), TypeError);
    assert.throws(() => given(accounts, { type: 'Abandoned', data: {} }, repositoryCreated), TypeError);
    const described: AccountEvent = { type: 'RepositoryDescribed', data: { repository_id: id, description: 'x' } };
    assert.throws(() => given(accounts, created, described), TypeError);
  });

  test('weighs more the longer its descriptions are', () => {
    const described = (description: string | null): AccountEvent => ({
      type: 'RepositoryDescribed',
      data: { repository_id: id, description },
    });
    const short = accounts.sizeBytes(open(repositoryCreated, described('x')));
    const long = accounts.sizeBytes(open(repositoryCreated, described('x'.repeat(1_000))));
    assert.ok(long >= short + 999);
    const again = accounts.sizeBytes(open(repositoryCreated, described('x'.repeat(1_000)), described('x')));
    assert.equal(again, short);
  });
});
