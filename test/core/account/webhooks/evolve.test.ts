/** The state that the events of an account's webhooks fold into. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { readEvent } from '../../../../core/kernel/decider.ts';
import { streamName } from '../../../../core/kernel/envelope.ts';
import { plusMs } from '../../../../core/kernel/ids.ts';
import {
  accountCreated,
  repositoryId,
  webhookCreated,
  webhookDeleted,
  webhookId,
} from '../../../support/account-history.ts';
import { FIRST_AT, given } from '../../../support/fold.ts';

const id = webhookId(1);
const webhook_id = id;
const until = '2026-11-22T10:00:00.000Z';
const first = plusMs(FIRST_AT, 1_000);

/** Returns the webhook after its creation and these events. */
function webhookAfter(...history: readonly AccountEvent[]) {
  const state = given(accounts, accountCreated, webhookCreated(1), ...history);
  assert.ok(state.status === 'open');
  return state.webhooks.get(id);
}

function rotated(digit: string): AccountEvent {
  return {
    type: 'WebhookSecretRotated',
    data: { webhook_id, secret_ref: digit.repeat(64), previous_valid_until: until },
  };
}

describe("A webhook's state", () => {
  test('has the settings of its creation at first', () => {
    assert.deepEqual(webhookAfter(), {
      id,
      urlRef: '1'.repeat(64),
      secretRef: '2'.repeat(64),
      previousSecret: null,
      events: ['push'],
      repositories: { scope: 'ALL_REPO', repositoryIds: [] },
      active: true,
      createdAt: first,
      updatedAt: first,
    });
  });

  test('keeps only the one previous secret after a rotation', () => {
    const twice = webhookAfter(rotated('3'), rotated('4'));
    assert.equal(twice?.secretRef, '4'.repeat(64));
    assert.deepEqual(twice.previousSecret, { ref: '3'.repeat(64), validUntil: until });
  });

  test('drops the previous secret when the URL changes, and takes every other change', () => {
    const changed = webhookAfter(
      rotated('3'),
      { type: 'WebhookUrlChanged', data: { webhook_id, url_ref: '5'.repeat(64), secret_ref: '6'.repeat(64) } },
      { type: 'WebhookEventsChanged', data: { webhook_id, events: ['ping'] } },
      { type: 'WebhookDeactivated', data: { webhook_id } },
    );
    assert.deepEqual(changed, {
      id,
      urlRef: '5'.repeat(64),
      secretRef: '6'.repeat(64),
      previousSecret: null,
      events: ['ping'],
      repositories: { scope: 'ALL_REPO', repositoryIds: [] },
      active: false,
      createdAt: first,
      updatedAt: plusMs(FIRST_AT, 5_000),
    });
  });

  test('names the repositories that it is notified of, whatever else changes', () => {
    const selected = webhookCreated(2, { scope: 'SELECTED_REPO', repository_ids: [repositoryId(7)] });
    const silenced: AccountEvent = { type: 'WebhookDeactivated', data: { webhook_id: webhookId(2) } };
    const state = given(accounts, accountCreated, selected, silenced);
    assert.deepEqual(state.status === 'open' && state.webhooks.get(webhookId(2))?.repositories, {
      scope: 'SELECTED_REPO',
      repositoryIds: [repositoryId(7)],
    });
  });

  test('selects all repositories if it was stored before webhooks named repositories', () => {
    const { data } = readEvent(accounts.kinds, {
      stream: streamName('account', repositoryId(9)),
      revision: 1,
      type: 'WebhookCreated',
      version: 1,
      data: { webhook_id, url_ref: '1'.repeat(64), secret_ref: '2'.repeat(64), events: ['push'], active: true },
    });
    assert.deepEqual(data, webhookCreated(1).data);
  });

  test('ends with its deletion, which can happen only once', () => {
    assert.equal(webhookAfter(webhookDeleted(1)), undefined);
    assert.throws(() => webhookAfter(webhookDeleted(1), webhookDeleted(1)), TypeError);
  });
});
