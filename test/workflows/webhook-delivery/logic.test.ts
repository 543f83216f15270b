/** What a delivery waits for after each of its events. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { RecordedEvent } from '../../../core/kernel/envelope.ts';
import { plusMs, type Timestamp, timestamp } from '../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import { webhookDelivery } from '../../../workflows/webhook-delivery/logic.ts';
import { goldenEvents } from '../../support/golden.ts';

const golden = goldenEvents().filter(({ category }) => category === webhookDelivery.category);

function goldenOf(type: string): RecordedEvent {
  const found = golden.find(({ event }) => event.type === type);
  assert.ok(found !== undefined, type);
  return found.event;
}

/** Returns when the step that is waited for after an event is due; null for none. */
function waitedFor(type: string, changes: JsonObject = {}): Timestamp | null {
  const event = goldenOf(type);
  const before = { step: 'due', dueAt: event.occurredAt, memory: {} } as const;
  return webhookDelivery.next(before, { ...event, data: { ...event.data, ...changes } })?.dueAt ?? null;
}

describe('A delivery', () => {
  test('waits only for the expiry of a claim and the time of a retry', () => {
    const waits = golden.map(({ event }): [string, Timestamp | null] => [event.type, waitedFor(event.type)]);
    assert.deepEqual(Object.fromEntries(waits), {
      WebhookDeliveryRequested: null,
      WebhookDeliveryAttemptClaimed: '2026-11-21T10:01:31.123Z',
      WebhookDeliveryAttempted: null,
      WebhookDeliveryAttemptFellDue: null,
      WebhookDeliverySucceeded: null,
      WebhookDeliveryFailed: null,
      WebhookRedelivered: null,
    });
  });

  test('waits for its time when the budget of the hour was used up, at the request and at a redelivery', () => {
    const at = timestamp('2026-11-21T11:00:00.000Z');
    for (const type of ['WebhookDeliveryRequested', 'WebhookRedelivered']) {
      const beyond = golden.find(({ event }) => event.type === type && event.version === 2);
      assert.ok(beyond !== undefined, type);
      const next = (data: JsonObject) => webhookDelivery.next(null, { ...beyond.event, data });
      assert.deepEqual(next({ ...beyond.event.data, not_before: at }), { step: 'due', dueAt: at, memory: {} });
      assert.equal(next({ ...beyond.event.data, not_before: null }), null);
    }
  });

  test('waits from the end of each failed attempt but the last, and not after an attempt that sent nothing', () => {
    const failed = { outcome: 'failed', started_at: '2026-11-21T10:00:31.200Z', duration_ms: 345 };
    const end = timestamp('2026-11-21T10:00:31.545Z');
    for (const [index, waitSeconds] of [8, 16, 32, 64, 128, 256, 512].entries()) {
      const dueAt = waitedFor('WebhookDeliveryAttempted', { ...failed, attempt: index + 1 });
      assert.equal(dueAt, plusMs(end, waitSeconds * 1_000));
    }
    assert.equal(waitedFor('WebhookDeliveryAttempted', { ...failed, attempt: 8 }), null);
    assert.equal(waitedFor('WebhookDeliveryAttempted', { ...failed, attempt: 1, outcome: 'refused' }), null);
  });
});
