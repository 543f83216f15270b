/** What the bodies of an account's deliveries may take, and which of them give way. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { createPostgresDeliveryStore } from '../../../../adapters/postgres/delivery-store.ts';
import { createPool } from '../../../../adapters/postgres/pool.ts';
import type { Plan } from '../../../../core/account/plans.ts';
import type { AccountId, EventId, WebhookDeliveryId } from '../../../../core/kernel/ids.ts';
import { WEBHOOK_PAYLOAD_BYTES_MAX } from '../../../../core/kernel/limits.ts';
import type { DeliveryStore } from '../../../../core/ports/delivery-store.ts';
import { WEBHOOK_ANSWER_BYTES_MAX } from '../../../../core/use-cases/webhooks/attempt-delivery.ts';
import {
  boundBodies,
  WEBHOOK_ANSWERS_BYTES_MAX,
  WEBHOOK_BODIES_UNLIMITED_BYTES_MAX,
  WEBHOOK_PAYLOADS_BYTES_MAX,
} from '../../../../core/use-cases/webhooks/limit-stored-bodies.ts';
import { newAccount } from '../../../support/accounts.ts';
import { cleanUp, type Ending } from '../../../support/cleanup.ts';
import { keepLog } from '../../../support/log.ts';
import { createMemoryDeliveryStore } from '../../../support/memory/delivery-store.ts';
import { createMemoryEventStore } from '../../../support/memory/event-store.ts';
import { startNode } from '../../../support/node.ts';
import { testDatabase } from '../../../support/postgres.ts';

const DAY_MS = 24 * 60 * 60_000;
const ANSWER = new Uint8Array(WEBHOOK_ANSWER_BYTES_MAX);
const PAYLOAD = 'x'.repeat(WEBHOOK_PAYLOAD_BYTES_MAX);

async function started(deliveries: DeliveryStore = createMemoryDeliveryStore(), plan: Plan = 'FREE') {
  const node = await startNode(createMemoryEventStore());
  const account = await newAccount(node, 'ada', plan);
  const pending = { events: new Set<EventId>(), deliveries: new Set<WebhookDeliveryId>() };
  const due = {
    deliveriesCaughtUp: async () => undefined,
    pendingAmong: async (_account: AccountId, events: readonly EventId[], ids: readonly WebhookDeliveryId[]) => ({
      events: new Set(events.filter((id) => pending.events.has(id))),
      deliveries: new Set(ids.filter((id) => pending.deliveries.has(id))),
    }),
  };
  /** Adds the bodies of a delivery, the payload with this text. */
  const add = async (body: string, answer = ANSWER) => {
    const made = { eventId: node.ids.next<EventId>(), delivery: node.ids.next<WebhookDeliveryId>() };
    const storedAt = node.clock.now();
    if (body !== '') await deliveries.putPayloads([{ eventId: made.eventId, account, body, sha256: 'x', storedAt }]);
    if (answer.length > 0)
      await deliveries.putAnswer({ ...made, series: 1, attempt: 1, account, body: answer, storedAt });
    return made;
  };
  const kept = async ({ eventId, delivery }: Awaited<ReturnType<typeof add>>) => [
    (await deliveries.payloads([eventId])).size,
    (await deliveries.answers([{ delivery, series: 1, attempt: 1 }])).size,
  ];
  const sums = async () => {
    const [found] = await deliveries.accountsBeyond({ payloadBytes: -1, answerBytes: -1 });
    return found ?? assert.fail();
  };
  const bound = () => boundBodies({ ...node, deliveries, due }, { aborted: false } as AbortSignal);
  return { node, account, pending, add, kept, sums, bound };
}

async function onPostgres(ending: Ending) {
  const database = await testDatabase();
  cleanUp(ending, () => database.close());
  const pool = createPool({ connectionString: database.connectionString, log: keepLog() });
  cleanUp(ending, () => pool.end());
  return { pool, ...(await started(createPostgresDeliveryStore(pool))) };
}

describe('The bodies of deliveries', () => {
  test('of a free account take at most 64 MiB of answers after thirty days of full ones, and the newest stay', async () => {
    const { node, add, kept, sums, bound } = await started();
    const first = await add('{}');
    let last = first;
    for (let hour = 0; hour < 30 * 24; hour += 1) {
      for (let count = 0; count < 20; count += 1) last = await add('{}');
      node.clock.advance(DAY_MS / 24);
      await bound();
      assert.ok((await sums()).answerBytes <= WEBHOOK_ANSWERS_BYTES_MAX);
    }
    assert.ok(
      (await sums()).answerBytes > WEBHOOK_ANSWERS_BYTES_MAX - 2 * WEBHOOK_ANSWER_BYTES_MAX,
      'no more than needed',
    );
    assert.deepEqual(
      [await kept(first), await kept(last)],
      [
        [0, 0],
        [1, 1],
      ],
    );
  });

  test('are bounded on PostgreSQL as well, where what is left is what the database holds', async (context) => {
    const { pool, node, account, pending, add, kept, sums, bound } = await onPostgres(context);
    const waiting = await add('{"waiting":true}');
    pending.events.add(waiting.eventId);
    pending.deliveries.add(waiting.delivery);
    const first = await add('{}');
    node.clock.advance(60_000);
    await pool.query(
      `INSERT INTO webhook_answers (delivery_id, series, attempt, account_id, event_id, body, stored_at)
       SELECT gen_random_uuid(), 1, 1, $1::uuid, gen_random_uuid(), convert_to(repeat('x', $2), 'UTF8'), $3::timestamptz
       FROM generate_series(1, 5000)`,
      [account, WEBHOOK_ANSWER_BYTES_MAX, node.clock.now()],
    );
    node.clock.advance(60_000);
    const last = await add('{}');
    await bound();
    const text = 'SELECT sum(octet_length(body))::float8 AS bytes FROM webhook_answers';
    const [{ bytes } = { bytes: 0 }] = (await pool.query<{ bytes: number }>(text)).rows;
    assert.ok(bytes <= WEBHOOK_ANSWERS_BYTES_MAX && bytes > WEBHOOK_ANSWERS_BYTES_MAX * 0.95, String(bytes));
    assert.ok((await sums()).answerBytes <= WEBHOOK_ANSWERS_BYTES_MAX);
    assert.deepEqual(
      [await kept(waiting), await kept(first), await kept(last)],
      [
        [1, 1],
        [0, 0],
        [1, 1],
      ],
    );
  });

  test('take at most 1 GiB of payloads; those of deliveries that have not ended, or may be requested yet, stay', async () => {
    const { node, pending, add, kept, sums, bound } = await started();
    const made: Awaited<ReturnType<typeof add>>[] = [];
    const count = WEBHOOK_PAYLOADS_BYTES_MAX / WEBHOOK_PAYLOAD_BYTES_MAX + 3;
    for (let at = 0; at < count; at += 1) made.push(await add(PAYLOAD, new Uint8Array(0)));
    const [first, second, third] = made;
    assert.ok(first !== undefined && second !== undefined && third !== undefined);
    assert.equal(await bound(), 0, 'all are younger than a minute');
    node.clock.advance(60_001);
    pending.events.add(first.eventId);
    assert.ok((await bound()) > 0);
    assert.ok((await sums()).payloadBytes <= WEBHOOK_PAYLOADS_BYTES_MAX);
    assert.deepEqual(
      [await kept(first), await kept(second), await kept(made.at(-1) ?? assert.fail())].map(([payload]) => payload),
      [1, 0, 1],
    );
    pending.events.clear();
    await add(PAYLOAD, new Uint8Array(0));
    await bound();
    assert.deepEqual((await kept(first))[0], 0, 'the oldest goes when it has ended');
  });

  test('give way no further than the scarcer of both bounds asks for, where payloads and answers are beyond theirs', async () => {
    const { node, add, sums, bound } = await started();
    const [payload, answer] = [WEBHOOK_PAYLOAD_BYTES_MAX + 256, WEBHOOK_ANSWER_BYTES_MAX + 256];
    const room = Math.floor(WEBHOOK_ANSWERS_BYTES_MAX / answer);
    assert.ok(room * payload < WEBHOOK_PAYLOADS_BYTES_MAX);
    for (let at = 0; at < WEBHOOK_PAYLOADS_BYTES_MAX / payload + 100; at += 1) await add(PAYLOAD);
    node.clock.advance(DAY_MS);
    await bound();
    const { payloadBytes, answerBytes } = await sums();
    assert.deepEqual({ payloadBytes, answerBytes }, { payloadBytes: room * payload, answerBytes: room * answer });
  });

  test('of an account without a quota of storage are left at the limit, and the oldest are looked for one byte past it', async () => {
    for (const [kind, bytes, isBeyond] of [
      ['payloadBytes', WEBHOOK_BODIES_UNLIMITED_BYTES_MAX, false],
      ['payloadBytes', WEBHOOK_BODIES_UNLIMITED_BYTES_MAX + 1, true],
      ['answerBytes', WEBHOOK_BODIES_UNLIMITED_BYTES_MAX, false],
      ['answerBytes', WEBHOOK_BODIES_UNLIMITED_BYTES_MAX + 1, true],
    ] as const) {
      const looks: string[] = [];
      const deliveries = createMemoryDeliveryStore();
      const { account, bound } = await started(
        {
          ...deliveries,
          accountsBeyond: async () => [{ account, payloadBytes: 0, answerBytes: 0, [kind]: bytes }],
          oldest: async (_account, looked) => {
            looks.push(looked);
            return [];
          },
        },
        'PRO',
      );
      await bound();
      assert.deepEqual(looks, isBeyond ? [kind.replace('Bytes', '')] : [], `${bytes} ${kind}`);
    }
  });

  test('of an account without a quota of storage may take 10 GiB', async () => {
    const { node, add, bound } = await started(createMemoryDeliveryStore(), 'PRO');
    for (let count = 0; count < 5_000; count += 1) await add('');
    node.clock.advance(DAY_MS);
    assert.equal(await bound(), 0);
  });
});
