/** What the bodies of deliveries may take in a real database: the oldest give way, as after the retention. */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { test } from 'vitest';
import { createPool } from '../../adapters/postgres/pool.ts';
import type { ExpiryReport } from '../../apps/admin/expire-storage.ts';
import { WEBHOOK_ANSWER_BYTES_MAX } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { WEBHOOK_ANSWERS_BYTES_MAX } from '../../core/use-cases/webhooks/limit-stored-bodies.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { answering } from '../support/receiver.ts';
import { admin, api, createAccount } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { createWebhook, listDeliveries, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

const WITHIN_MS = 60_000;

test('answers beyond 64 MiB make the oldest delivery give way within a minute, and at `storage expire`', async (context) => {
  const receivers = await webhookReceivers(context);
  const shared = await sharedParts(context);
  const strata = await startNode(context, shared, receivers.env);
  const ada = await createAccount(strata, 'ada', 'FREE');
  const receiver = await receivers.start(answering('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nkept'));
  const webhook = await createWebhook(strata, ada, receiver.url);
  const pool = createPool({ connectionString: shared.env['STRATA_DATABASE_URL'] ?? '', log: keepLog() });
  cleanUp(context, () => pool.end());
  const ping = async (): Promise<string> => {
    const asked = await api(strata, ada.token, 'POST', `/v1/webhooks/${webhook.id}/ping`);
    const [newest] = await untilDeliveries(strata, ada, webhook.id, (list) => list[0]?.status === 'SUCCESS');
    assert.equal(newest?.id, (asked.body as { readonly delivery_id: string }).delivery_id);
    assert.equal(newest['response_body'], 'kept');
    return newest.id;
  };
  const redelivered = async (delivery: string): Promise<number> =>
    (await api(strata, ada.token, 'POST', `/v1/webhooks/${webhook.id}/deliveries/${delivery}/redeliver`)).status;
  const fill = () =>
    pool.query(
      `INSERT INTO webhook_answers (delivery_id, series, attempt, account_id, event_id, body, stored_at)
       SELECT gen_random_uuid(), 1, 1, $1::uuid, gen_random_uuid(), convert_to(repeat('x', $2), 'UTF8'), now()
       FROM generate_series(1, $3::integer)`,
      [ada.id, WEBHOOK_ANSWER_BYTES_MAX, WEBHOOK_ANSWERS_BYTES_MAX / WEBHOOK_ANSWER_BYTES_MAX],
    );
  const first = await ping();
  assert.equal(await redelivered(first), 202);
  await untilDeliveries(strata, ada, webhook.id, ([only]) => only?.status === 'SUCCESS' && only.attempts === 2);
  await fill();
  const deadline = Date.now() + WITHIN_MS;
  const shown = async () => (await listDeliveries(strata, ada, webhook.id, '?include_payload=true')).at(-1);
  while ((await shown())?.['payload'] !== null) {
    assert.ok(Date.now() < deadline, 'within a minute');
    await sleep(500);
  }
  const given = await shown();
  assert.deepEqual([given?.id, given?.status, given?.['response_body']], [first, 'SUCCESS', null]);
  assert.equal(await redelivered(first), 404);
  const second = await ping();
  await fill();
  const report = (await admin(strata, ['storage', 'expire'])) as ExpiryReport;
  assert.equal(typeof report.delivery_bodies, 'number');
  assert.equal(await redelivered(second), 404);
  const text = 'SELECT sum(octet_length(body))::float8 AS bytes FROM webhook_answers';
  const [{ bytes } = { bytes: 0 }] = (await pool.query<{ bytes: number }>(text)).rows;
  assert.ok(bytes <= WEBHOOK_ANSWERS_BYTES_MAX, String(bytes));
});
