/** What the dispatcher does with news that come while it reads or attempts: a read model and attempts of the test's. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import {
  type AccountId,
  plusMs,
  type RepositoryId,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../../core/kernel/ids.ts';
import { WEBHOOK_WINDOW_DELIVERIES_MAX } from '../../../core/kernel/limits.ts';
import type { DueDeliveryRow } from '../../../core/ports/read-models.ts';
import type { Looked } from '../../../core/use-cases/webhooks/attempt-delivery.ts';
import { createDispatcher } from '../../../workflows/webhook-delivery/dispatcher.ts';
import { newUuid } from '../../support/read-models.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { eventually } from '../../support/test-timers.ts';
import { settle } from '../../support/watched-log.ts';

const WEBHOOK = newUuid<WebhookId>();
const ACCOUNT = newUuid<AccountId>();
const REPOSITORY = newUuid<RepositoryId>();

function row(fields: Partial<DueDeliveryRow> = {}): DueDeliveryRow {
  const id = newUuid<WebhookDeliveryId>();
  return { id, account: ACCOUNT, repository: REPOSITORY, isFirst: true, isDue: true, ...fields };
}

/** A dispatcher of one webhook; the test says what is due, and how attempts end. */
function dispatching() {
  const clock = createTestClock();
  const attempts: { readonly id: WebhookDeliveryId; readonly end: (looked: Partial<Looked>) => void }[] = [];
  const reads: ((rows: readonly DueDeliveryRow[]) => void)[] = [];
  let position = 1n as LogPosition;
  const dispatcher = createDispatcher({
    due: {
      seen: async () => undefined,
      dueWebhooks: async () => [{ webhook: WEBHOOK, account: ACCOUNT }],
      dueDeliveries: () => new Promise((resolve) => reads.push(resolve)),
      backlog: () => Promise.reject(new TypeError('Not asked here')),
    },
    ...{ clock, alarm: clock },
    attempt: ({ id }) =>
      new Promise((resolve) => {
        const nothing: Looked = { dueAt: null, isFirst: false, position };
        attempts.push({ id, end: (looked) => resolve({ ...nothing, ...looked }) });
      }),
    receiverOf: async () => 'receiver.example',
    onFault: (cause) => assert.fail(String(cause)),
  });
  return {
    ...{ clock, dispatcher, attempts },
    reads: () => reads.length,
    /** Answers the oldest question for what is due. */
    answer: async (...rows: readonly DueDeliveryRow[]) => {
      await eventually(() => reads.length > 0);
      reads.shift()?.(rows);
      await settle();
    },
    /** A place further on in the log. */
    heard: ({ id }: DueDeliveryRow) => {
      position = (position + 1n) as LogPosition;
      return { id, webhook: WEBHOOK, account: ACCOUNT, position };
    },
    ids: () => attempts.map(({ id }) => id),
  };
}

describe('The dispatcher', () => {
  test('attempts what fell due again before the end of an attempt that saw nothing of it', async () => {
    const on = dispatching();
    const redelivered = row();
    await on.dispatcher.start();
    await on.answer(redelivered);
    const before = 1n as LogPosition;
    on.dispatcher.due(on.heard(redelivered), 'later');
    on.attempts[0]?.end({ position: before });
    await on.answer({ ...redelivered, isFirst: false });
    assert.deepEqual(on.ids(), [redelivered.id, redelivered.id]);
  });

  test('reads once more for what fell due while it read, though that may have filled its window', async () => {
    const on = dispatching();
    const retries = Array.from({ length: WEBHOOK_WINDOW_DELIVERIES_MAX }, () => row({ isFirst: false }));
    const last = row({ isFirst: false });
    await on.dispatcher.start();
    await on.answer(...retries);
    on.dispatcher.due(on.heard(row()), 'first');
    on.dispatcher.due(on.heard(last), 'later');
    await on.answer();
    assert.equal(on.reads(), 1, 'the answer may not know of the last one');
    await on.answer(last);
    on.attempts[0]?.end({});
    await settle();
    assert.ok(on.ids().includes(last.id));
  });

  test('leaves to the window what the window leaves out, and reads on before it is empty', async () => {
    const on = dispatching();
    const retries = Array.from({ length: WEBHOOK_WINDOW_DELIVERIES_MAX }, () => row({ isFirst: false }));
    await on.dispatcher.start();
    await on.answer(...retries);
    for (let more = 0; more < 1_000; more += 1) on.dispatcher.due(on.heard(row()), 'later');
    assert.equal(on.reads(), 0);
    for (let ended = 0; on.reads() === 0; ended += 1) {
      assert.ok(ended < retries.length, 'it is read before all are attempted');
      on.attempts[ended]?.end({});
      await settle();
    }
  });

  test('lets a first attempt that another process claimed hold up those behind it until it was recorded', async () => {
    const on = dispatching();
    const [claimed, next, elsewhere] = [row({ isDue: false }), row(), row({ repository: newUuid<RepositoryId>() })];
    await on.dispatcher.start();
    await on.answer(claimed, next, elsewhere);
    assert.deepEqual(on.ids(), [elsewhere.id]);
    on.dispatcher.recorded(on.heard(elsewhere));
    assert.equal(on.reads(), 0, 'that held up nobody');
    on.dispatcher.recorded(on.heard(claimed));
    await on.answer(next);
    assert.deepEqual(on.ids(), [elsewhere.id, next.id]);
  });

  test('keeps the place of a first attempt that it found claimed, and takes it back when the claim has lapsed', async () => {
    const on = dispatching();
    const [claimed, next] = [row(), row()];
    await on.dispatcher.start();
    await on.answer(claimed, next);
    on.attempts[0]?.end({ isFirst: true });
    await settle();
    assert.deepEqual(on.ids(), [claimed.id], 'what stands behind it waits');
    on.dispatcher.due(on.heard(claimed), 'claimed');
    await on.answer(claimed, next);
    on.attempts[1]?.end({});
    await settle();
    assert.deepEqual(on.ids(), [claimed.id, claimed.id, next.id]);
  });

  test('waits out a clock that goes behind the one that said what is due', async () => {
    const on = dispatching();
    const early = row({ isFirst: false });
    await on.dispatcher.start();
    await on.answer(early);
    const dueAt = plusMs(on.clock.now(), 300);
    on.attempts[0]?.end({ dueAt });
    await eventually(() => on.clock.awaited().join() === dueAt);
    assert.equal(on.attempts.length, 1);
    on.clock.set(dueAt);
    await eventually(() => on.attempts.length === 2);
    on.attempts[1]?.end({});
    await settle();
    assert.deepEqual(on.clock.awaited(), []);
  });
});
