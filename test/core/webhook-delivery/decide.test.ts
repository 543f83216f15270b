/**
 * Decisions about a delivery: the table of docs/interface.md, Webhooks, the schedule, and repeated and late commands.
 */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, test } from 'vitest';
import { plusMs, type Timestamp, uuid } from '../../../core/kernel/ids.ts';
import { WEBHOOK_ATTEMPTS_MAX, WEBHOOK_SERIES_MAX } from '../../../core/kernel/limits.ts';
import { type AttemptResult, resultOf, statedResult } from '../../../core/webhook-delivery/attempt.ts';
import type { WebhookDeliveryCommand } from '../../../core/webhook-delivery/commands.ts';
import { decideWebhookDelivery, WEBHOOK_CLAIM_SPAN_MS } from '../../../core/webhook-delivery/decide.ts';
import type { WebhookDeliveryEvent } from '../../../core/webhook-delivery/events.ts';
import { webhookDeliveries } from '../../../core/webhook-delivery/evolve.ts';
import type { WebhookDelivery } from '../../../core/webhook-delivery/state.ts';
import { FIRST_AT } from '../../support/fold.ts';

const NODE_A = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000a');
const NODE_B = uuid('0190f3e2-7c1a-7b4e-9a35-00000000000b');
const REQUEST: WebhookDeliveryCommand = {
  type: 'RequestDelivery',
  webhookId: uuid('0190f3e2-7c1a-7b4e-9a35-000000000001'),
  eventId: uuid('0190f3e2-7c1a-7b4e-9a35-000000000002'),
  event: 'push',
  repositoryId: uuid('0190f3e2-7c1a-7b4e-9a35-000000000003'),
  payloadSha256: '8'.repeat(64),
  notBefore: null,
};
const answered = (status: number): AttemptResult => ({
  kind: 'answered',
  status,
  answerSha256: '9'.repeat(64),
  detail: null,
});
const TIMED_OUT: AttemptResult = { kind: 'failed', failure: 'timed-out', status: null, detail: null };

/** A delivery with a clock. Each command is decided, and its events are folded, at the current time. */
function delivery() {
  let state: WebhookDelivery = webhookDeliveries.initial;
  let now: Timestamp = FIRST_AT;
  const decide = (command: WebhookDeliveryCommand): readonly WebhookDeliveryEvent[] => {
    const decision = decideWebhookDelivery(state, command);
    if ('refused' in decision) throw new Error(decision.refused.code);
    state = decision.events.reduce((before, event) => webhookDeliveries.evolve(before, event, now), state);
    return decision.events;
  };
  const claim = (claimId = NODE_A) => decide({ type: 'ClaimAttempt', claimId, now });
  const fallDue = () => decide({ type: 'MakeAttemptDue', now });
  return {
    state: () => state,
    now: () => now,
    pass: (ms: number) => (now = plusMs(now, ms)),
    decide,
    claim,
    fallDue,
    /** Makes the next attempt, which takes `durationMs`. */
    attempt: (result: AttemptResult, durationMs = 0) => {
      fallDue();
      assert.equal(claim().length, 1, 'it is due');
      assert.ok(state.status === 'pending');
      const { series, attempts } = state;
      const startedAt = now;
      now = plusMs(now, durationMs);
      return decide({ type: 'RecordAttempt', series, attempt: attempts + 1, startedAt, durationMs, result });
    },
  };
}

function requestedDelivery() {
  const one = delivery();
  one.decide(REQUEST);
  return one;
}

const typesOf = (events: readonly WebhookDeliveryEvent[]): string[] => events.map(({ type }) => type);

describe('A delivery', () => {
  test('beyond the budget of the hour is due at its time, not before, and no wait after it is longer', () => {
    const one = delivery();
    const notBefore = plusMs(FIRST_AT, 60_000);
    const [requested] = one.decide({ ...REQUEST, notBefore });
    assert.equal(requested?.type === 'WebhookDeliveryRequested' && requested.data.not_before, notBefore);
    assert.deepEqual(one.claim(), []);
    one.pass(59_999);
    assert.deepEqual([one.fallDue(), one.claim()], [[], []]);
    one.pass(1);
    assert.deepEqual(
      one.attempt(answered(500), 10).map(({ type }) => type),
      ['WebhookDeliveryAttempted'],
    );
    const state = one.state();
    assert.equal(state.status === 'pending' && state.nextAttemptAt, plusMs(notBefore, 10 + 8_000));
  });

  test('that is redelivered beyond the budget of the hour waits for its time', () => {
    const one = requestedDelivery();
    one.attempt(answered(204));
    const notBefore = plusMs(one.now(), 1);
    assert.deepEqual(one.decide({ type: 'Redeliver', notBefore }), [
      { type: 'WebhookRedelivered', data: { series: 2, not_before: notBefore } },
    ]);
    assert.deepEqual([one.fallDue(), one.claim()], [[], []]);
    one.pass(1);
    assert.deepEqual(typesOf(one.attempt(answered(204))), ['WebhookDeliveryAttempted', 'WebhookDeliverySucceeded']);
  });

  test('is requested once, and its first attempt is due immediately', () => {
    const one = delivery();
    assert.deepEqual(typesOf(one.decide(REQUEST)), ['WebhookDeliveryRequested']);
    assert.deepEqual(one.decide(REQUEST), []);
    const { type: _, notBefore: __, ...facts } = REQUEST;
    assert.deepEqual(one.state(), {
      ...facts,
      status: 'pending',
      series: 1,
      attempts: 0,
      nextAttemptAt: FIRST_AT,
      next: { status: 'due' },
    });
  });

  test('succeeds with any 2xx answer, and ends then', () => {
    for (const status of [200, 201, 204, 226, 299]) {
      const one = requestedDelivery();
      const [attempted, ...rest] = one.attempt(answered(status), 120);
      assert.deepEqual(attempted, {
        type: 'WebhookDeliveryAttempted',
        data: {
          series: 1,
          attempt: 1,
          started_at: FIRST_AT,
          duration_ms: 120,
          outcome: 'succeeded',
          http_status: status,
          error: null,
          detail: null,
          answer_sha256: '9'.repeat(64),
        },
      });
      assert.deepEqual(typesOf(rest), ['WebhookDeliverySucceeded']);
      assert.equal(one.state().status, 'succeeded');
      one.pass(1_000_000_000);
      assert.deepEqual(one.claim(), []);
    }
  });

  test('is attempted again after any other answer of the receiver, and any failure of network or DNS', () => {
    const failures = [
      'timed-out',
      'name-not-found',
      'connection-failed',
      'certificate-invalid',
      'answer-too-large',
    ] as const;
    for (const result of [
      ...[300, 301, 302, 307, 400, 401, 404, 410, 429, 500, 503, 599].map(answered),
      ...failures.map((failure): AttemptResult => ({ kind: 'failed', failure, status: null, detail: 'ECODE' })),
    ]) {
      const one = requestedDelivery();
      const [attempted, ...rest] = one.attempt(result);
      assert.ok(attempted?.type === 'WebhookDeliveryAttempted');
      assert.equal(attempted.data.outcome, 'failed');
      assert.equal(attempted.data.error, result.kind === 'failed' ? result.failure : 'status-not-2xx');
      assert.deepEqual(rest, []);
      assert.equal(one.state().status, 'pending');
    }
  });

  test('waits 8, 16, … 512 seconds from the end of each attempt, and fails with the eighth attempt', () => {
    const one = requestedDelivery();
    for (const waitSeconds of [8, 16, 32, 64, 128, 256, 512]) {
      assert.deepEqual(typesOf(one.attempt(TIMED_OUT, 30_000)), ['WebhookDeliveryAttempted']);
      const state = one.state();
      assert.ok(state.status === 'pending');
      assert.equal(state.nextAttemptAt, plusMs(one.now(), waitSeconds * 1_000));
      one.pass(waitSeconds * 1_000 - 1);
      assert.deepEqual([...one.claim(), ...one.fallDue()], [], 'not a millisecond early');
      one.pass(1);
    }
    assert.deepEqual(typesOf(one.attempt(answered(500))), ['WebhookDeliveryAttempted', 'WebhookDeliveryFailed']);
    const { attempts, ...state } = one.state() as Extract<WebhookDelivery, { attempts: number }>;
    assert.deepEqual([state.status, attempts], ['failed', WEBHOOK_ATTEMPTS_MAX]);
    one.pass(1_000_000_000);
    assert.deepEqual(one.claim(), []);
  });

  test('fails immediately, at any attempt, if nothing may be sent', () => {
    for (const why of [
      'webhook-inactive',
      'webhook-deleted',
      'address-not-public',
      'own-host',
      'unexpected-error',
    ] as const) {
      for (const attemptsBefore of [0, 1, 7]) {
        const one = requestedDelivery();
        for (let n = 0; n < attemptsBefore; n += 1) {
          one.attempt(TIMED_OUT);
          one.pass(512_000);
        }
        const [attempted, ...rest] = one.attempt({ kind: 'not-sent', why });
        assert.ok(attempted?.type === 'WebhookDeliveryAttempted');
        const { outcome, http_status, error, answer_sha256 } = attempted.data;
        assert.deepEqual([outcome, http_status, error, answer_sha256], ['refused', null, why, null]);
        assert.deepEqual(typesOf(rest), ['WebhookDeliveryFailed']);
        assert.equal(one.state().status, 'failed');
      }
    }
  });

  test('gets all its attempts again when it is redelivered', () => {
    for (const end of [answered(200), { kind: 'not-sent', why: 'webhook-inactive' } as const]) {
      const one = requestedDelivery();
      one.attempt(end);
      one.pass(5_000);
      assert.deepEqual(one.decide({ type: 'Redeliver', notBefore: null }), [
        { type: 'WebhookRedelivered', data: { series: 2, not_before: null } },
      ]);
      assert.deepEqual(one.decide({ type: 'Redeliver', notBefore: null }), [], 'it is under way');
      for (let attempt = 1; attempt <= WEBHOOK_ATTEMPTS_MAX; attempt += 1) {
        const [attempted] = one.attempt(TIMED_OUT);
        assert.ok(attempted?.type === 'WebhookDeliveryAttempted');
        assert.deepEqual([attempted.data.series, attempted.data.attempt], [2, attempt]);
        one.pass(512_000);
      }
      assert.equal(one.state().status, 'failed');
    }
  });

  test('can be redelivered as often as the limit allows, and no more', () => {
    const one = requestedDelivery();
    for (let series = 1; series < WEBHOOK_SERIES_MAX; series += 1) {
      one.attempt(answered(200));
      assert.equal(one.decide({ type: 'Redeliver', notBefore: null }).length, 1, String(series));
      one.pass(1_000);
    }
    one.attempt(answered(200));
    assert.throws(() => one.decide({ type: 'Redeliver', notBefore: null }), {
      message: 'webhook-redelivery-limit-reached',
    });
  });

  test('refuses every command if it was never requested', () => {
    const one = delivery();
    for (const command of [
      { type: 'Redeliver', notBefore: null },
      { type: 'ClaimAttempt', claimId: NODE_A, now: FIRST_AT },
      { type: 'MakeAttemptDue', now: FIRST_AT },
      { type: 'RecordAttempt', series: 1, attempt: 1, startedAt: FIRST_AT, durationMs: 0, result: TIMED_OUT },
    ] satisfies WebhookDeliveryCommand[]) {
      assert.throws(() => one.decide(command), { message: 'webhook-delivery-not-found' });
    }
  });
});

describe('An attempt', () => {
  test('belongs to the process that claimed it, until the claim lapses', () => {
    const one = requestedDelivery();
    const until = plusMs(FIRST_AT, WEBHOOK_CLAIM_SPAN_MS);
    assert.deepEqual(one.claim(NODE_A), [
      { type: 'WebhookDeliveryAttemptClaimed', data: { series: 1, attempt: 1, claim_id: NODE_A, until } },
    ]);
    one.pass(WEBHOOK_CLAIM_SPAN_MS - 1);
    assert.deepEqual([...one.claim(NODE_B), ...one.fallDue()], []);
    one.pass(1);
    assert.deepEqual(one.claim(NODE_B), [], 'not before the event that makes it due');
    const due = { series: 1, attempt: 1 };
    assert.deepEqual(one.fallDue(), [{ type: 'WebhookDeliveryAttemptFellDue', data: due }]);
    assert.deepEqual(one.fallDue(), [], 'said once');
    assert.equal(one.claim(NODE_B).length, 1, 'the first node stopped between the request and the record');
    const state = one.state();
    assert.ok(state.status === 'pending' && state.next.status === 'claimed');
    assert.deepEqual([state.next.claimId, state.attempts], [NODE_B, 0], 'the same attempt, not the next one');
  });

  test('falls due once for each wait, and never while nothing waits', () => {
    const one = requestedDelivery();
    one.pass(1_000_000_000);
    assert.deepEqual(one.fallDue(), [], 'it is due from the start');
    one.attempt(TIMED_OUT);
    one.pass(8_000);
    assert.deepEqual(one.fallDue(), [{ type: 'WebhookDeliveryAttemptFellDue', data: { series: 1, attempt: 2 } }]);
    assert.deepEqual(one.fallDue(), []);
    one.pass(-1);
    assert.deepEqual(one.claim(), [], 'a node whose clock is behind waits until its own clock reaches the time');
    one.pass(1);
    one.attempt(answered(200));
    one.pass(1_000_000_000);
    assert.deepEqual(one.fallDue(), [], 'it has ended');
  });

  test('replays the claims of an earlier version, which claimed again after a lapsed claim and at its time', () => {
    const one = requestedDelivery();
    const claimed = { series: 1, attempt: 1, claim_id: NODE_A, until: plusMs(FIRST_AT, WEBHOOK_CLAIM_SPAN_MS) };
    const events: readonly WebhookDeliveryEvent[] = [
      { type: 'WebhookDeliveryAttemptClaimed', data: claimed },
      { type: 'WebhookDeliveryAttemptClaimed', data: { ...claimed, claim_id: NODE_B } },
    ];
    const state = events.reduce((before, event) => webhookDeliveries.evolve(before, event, FIRST_AT), one.state());
    assert.ok(state.status === 'pending' && state.next.status === 'claimed' && state.next.claimId === NODE_B);
  });

  test('counts once, whichever process records it first', () => {
    const one = requestedDelivery();
    one.claim();
    const record = { type: 'RecordAttempt', series: 1, attempt: 1, startedAt: FIRST_AT, durationMs: 5 } as const;
    assert.equal(one.decide({ ...record, result: TIMED_OUT }).length, 1);
    assert.deepEqual(one.decide({ ...record, result: TIMED_OUT }), []);
    assert.deepEqual(one.decide({ ...record, result: answered(200) }), [], 'late');
    assert.deepEqual(one.decide({ ...record, attempt: 3, result: answered(200) }), [], 'it is not the next attempt');
    assert.equal(one.state().status, 'pending');
  });

  test('of an earlier series cannot be recorded in this one', () => {
    const one = requestedDelivery();
    one.attempt(answered(200));
    one.decide({ type: 'Redeliver', notBefore: null });
    const late = { type: 'RecordAttempt', series: 1, attempt: 1, startedAt: FIRST_AT, durationMs: 0 } as const;
    assert.deepEqual(one.decide({ ...late, result: answered(200) }), []);
    assert.equal(one.state().status, 'pending');
  });

  test('has the result of its exchange', () => {
    const sha256 = (body: Uint8Array): string => `hash of ${body.length}`;
    const body = new Uint8Array(3);
    assert.deepEqual(resultOf({ outcome: 'answered', status: 500, body, extent: 'bounded' }, sha256), {
      kind: 'answered',
      status: 500,
      answerSha256: 'hash of 3',
      detail: null,
    });
    for (const [status, outcome] of [
      [200, 'succeeded'],
      [500, 'failed'],
    ] as const) {
      const result = resultOf({ outcome: 'answered', status, body, extent: 'cut' }, sha256);
      const { outcome: stated, http_status, detail, answer_sha256 } = statedResult(result);
      assert.deepEqual([stated, http_status, detail, answer_sha256], [outcome, status, 'answer-cut', 'hash of 3']);
    }
    assert.deepEqual(resultOf({ outcome: 'refused', fault: 'own-host' }, sha256), {
      kind: 'not-sent',
      why: 'own-host',
    });
    const failed = { failure: 'tls-failed', status: null, detail: 'ECONNRESET' } as const;
    assert.deepEqual(resultOf({ outcome: 'failed', ...failed }, sha256), { kind: 'failed', ...failed });
  });
});

describe('For any sequence of results', () => {
  const anyResult = fc.oneof(
    fc.integer({ min: 200, max: 599 }).map(answered),
    fc.constant(TIMED_OUT),
    fc.constant<AttemptResult>({ kind: 'not-sent', why: 'webhook-inactive' }),
  );

  test('a delivery ends with its first success, its first refusal or its eighth failure, and never before', () => {
    fc.assert(
      fc.property(fc.array(anyResult, { minLength: 8, maxLength: 8 }), fc.nat(30_000), (results, durationMs) => {
        const one = requestedDelivery();
        const last = results.findIndex(
          (result) => result.kind === 'not-sent' || (result.kind === 'answered' && result.status < 300),
        );
        const made = last === -1 ? WEBHOOK_ATTEMPTS_MAX : last + 1;
        for (const [index, result] of results.slice(0, made).entries()) {
          assert.equal(one.state().status, 'pending');
          one.attempt(result, durationMs);
          if (index + 1 < made) one.pass(8_000 * 2 ** index);
        }
        const end = results[made - 1];
        assert.equal(one.state().status, end?.kind === 'answered' && end.status < 300 ? 'succeeded' : 'failed');
      }),
    );
  });
});
