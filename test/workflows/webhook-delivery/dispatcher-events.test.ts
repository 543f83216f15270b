/** Events that reach the dispatcher while it reads or attempts; the test controls the read model and the attempts. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import {
  type AccountId,
  plusMs,
  type RepositoryId,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../../core/kernel/ids.ts';
import type { DueDeliveryRow } from '../../../core/ports/due-deliveries.ts';
import type { DeliverySchedule } from '../../../core/use-cases/webhooks/attempt-delivery.ts';
import { createDispatcher } from '../../../workflows/webhook-delivery/dispatcher.ts';
import { WEBHOOK_WINDOW_DELIVERIES_MAX } from '../../../workflows/webhook-delivery/limits.ts';
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

/** Creates a dispatcher for one webhook; the test says what is due, and how attempts end. */
function dispatching() {
  const clock = createTestClock();
  const attempts: { readonly id: WebhookDeliveryId; readonly end: (looked: Partial<DeliverySchedule>) => void }[] = [];
  const reads: ((rows: readonly DueDeliveryRow[]) => void)[] = [];
  let position = 1n as LogPosition;
  const dispatcher = createDispatcher({
    due: {
      deliveriesCaughtUp: async () => undefined,
      dueWebhooks: async () => [{ webhook: WEBHOOK, account: ACCOUNT }],
      dueDeliveries: () => new Promise((resolve) => reads.push(resolve)),
      backlog: () => Promise.reject(new TypeError('This test needs no backlog')),
    },
    ...{ clock, alarm: clock },
    attempt: ({ id }) =>
      new Promise((resolve) => {
        const nothing: DeliverySchedule = { dueAt: null, isFirst: false, position };
        attempts.push({ id, end: (looked) => resolve({ ...nothing, ...looked }) });
      }),
    receiverOf: async () => 'receiver.example',
    onFault: (cause) => assert.fail(String(cause)),
  });
  return {
    ...{ clock, dispatcher, attempts },
    reads: () => reads.length,
    /** Answers the oldest open read of due deliveries. */
    answer: async (...rows: readonly DueDeliveryRow[]) => {
      await eventually(() => reads.length > 0);
      reads.shift()?.(rows);
      await settle();
    },
    /** Returns an event of the delivery at the next position of the log. */
    eventOf: ({ id }: DueDeliveryRow) => {
      position = (position + 1n) as LogPosition;
      return { id, webhook: WEBHOOK, account: ACCOUNT, position };
    },
    ids: () => attempts.map(({ id }) => id),
  };
}

describe('The dispatcher', () => {
  test('attempts a delivery again that fell due during its attempt, which had read the stream before', async () => {
    const on = dispatching();
    const redelivered = row();
    await on.dispatcher.start();
    await on.answer(redelivered);
    const before = 1n as LogPosition;
    on.dispatcher.due(on.eventOf(redelivered), 'later');
    on.attempts[0]?.end({ position: before });
    await on.answer({ ...redelivered, isFirst: false });
    assert.deepEqual(on.ids(), [redelivered.id, redelivered.id]);
  });

  test('reads once more for a delivery that fell due during a read, although the window may be full', async () => {
    const on = dispatching();
    const retries = Array.from({ length: WEBHOOK_WINDOW_DELIVERIES_MAX }, () => row({ isFirst: false }));
    const last = row({ isFirst: false });
    await on.dispatcher.start();
    await on.answer(...retries);
    on.dispatcher.due(on.eventOf(row()), 'first');
    on.dispatcher.due(on.eventOf(last), 'later');
    await on.answer();
    assert.equal(on.reads(), 1, 'the answer may lack the last one');
    await on.answer(last);
    on.attempts[0]?.end({});
    await settle();
    assert.ok(on.ids().includes(last.id));
  });

  test('reads nothing for deliveries behind a full window, and reads again before the window is empty', async () => {
    const on = dispatching();
    const retries = Array.from({ length: WEBHOOK_WINDOW_DELIVERIES_MAX }, () => row({ isFirst: false }));
    await on.dispatcher.start();
    await on.answer(...retries);
    for (let more = 0; more < 1_000; more += 1) on.dispatcher.due(on.eventOf(row()), 'later');
    assert.equal(on.reads(), 0);
    for (let ended = 0; on.reads() === 0; ended += 1) {
      assert.ok(ended < retries.length, 'the window was not read before all were attempted');
      on.attempts[ended]?.end({});
      await settle();
    }
  });

  test('blocks first attempts behind one that another process claimed, until that one was recorded', async () => {
    const on = dispatching();
    const [claimed, next, elsewhere] = [row({ isDue: false }), row(), row({ repository: newUuid<RepositoryId>() })];
    await on.dispatcher.start();
    await on.answer(claimed, next, elsewhere);
    assert.deepEqual(on.ids(), [elsewhere.id]);
    on.dispatcher.recorded(on.eventOf(elsewhere));
    assert.equal(on.reads(), 0, 'no attempt waited for that one');
    on.dispatcher.recorded(on.eventOf(claimed));
    await on.answer(next);
    assert.deepEqual(on.ids(), [elsewhere.id, next.id]);
  });

  test('keeps the place of a first attempt that is claimed elsewhere, and attempts it when the claim has expired', async () => {
    const on = dispatching();
    const [claimed, next] = [row(), row()];
    await on.dispatcher.start();
    await on.answer(claimed, next);
    on.attempts[0]?.end({ isFirst: true });
    await settle();
    assert.deepEqual(on.ids(), [claimed.id], 'the next one waits for it');
    on.dispatcher.due(on.eventOf(claimed), 'claimed');
    await on.answer(claimed, next);
    on.attempts[1]?.end({});
    await settle();
    assert.deepEqual(on.ids(), [claimed.id, claimed.id, next.id]);
  });

  test('waits until its own clock reaches the due time, if its clock is behind', async () => {
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
