/**
 * The receivers that the documentation shows, run as they stand there. The attack: a POST to a receiver's address by
 * somebody who does not know the secret.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { digest } from '../../../../adapters/node/digest.ts';
import { newWebhookSecret } from '../../../../adapters/node/webhook-secret.ts';
import { type AccountId, type EventId, timestamp, uuid, type WebhookId } from '../../../../core/kernel/ids.ts';
import { pingPayload } from '../../../../core/webhook-delivery/payload.ts';
import { cleanUp, type Ending } from '../../../support/cleanup.ts';
import { freePort } from '../../../support/free-port.ts';
import { isThere } from '../../../support/optional-suites.ts';
import { skippedFor } from '../../../support/skipped.ts';

const SAMPLES = path.resolve(import.meta.dirname, '../../../../apps/website/docs/samples');
const PAYLOAD = pingPayload({
  eventId: uuid<EventId>('0190f3e2-7c1a-7b4e-9a35-000000000001'),
  createdAt: timestamp('2026-11-21T10:00:00.000Z'),
  webhook: {
    id: uuid<WebhookId>('0190f3e2-7c1a-7b4e-9a35-000000000002'),
    url: 'https://receiver.example/hook',
    events: ['ping'],
    active: true,
  },
  owner: { id: uuid<AccountId>('0190f3e2-7c1a-7b4e-9a35-000000000003'), username: 'ada-ä' },
});

/** Starts a receiver and returns a function that sends it a body, signed as deliveries are. */
async function startReceiver(context: Ending, command: string, file: string, secret: string) {
  const port = await freePort();
  const env = { PATH: process.env['PATH'] ?? '', WEBHOOK_SECRET: secret, PORT: String(port) };
  const child = spawn(command, [path.join(SAMPLES, file)], { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit');
  cleanUp(context, async () => {
    child.kill();
    await exited;
  });
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  while (!printed.includes('listening')) {
    assert.equal(child.exitCode, null, 'it ended');
    await sleep(10);
  }
  const post = async (headers: Readonly<Record<string, string>>, body = PAYLOAD): Promise<number> => {
    const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body });
    return answer.status;
  };
  return { post, events: () => printed.split('\n').filter((line) => line.startsWith('ping')).length };
}

describe('The receiver of the documentation', () => {
  for (const [command, file, missing] of [
    [process.execPath, 'receive-webhook.mjs', false],
    ['python3', 'receive_webhook.py', isThere('python3') ? false : 'needs python3'],
  ] as const) {
    test(
      `${file} takes what is signed with its secret, once, and nothing else`,
      skippedFor(missing),
      async (context) => {
        const secret = newWebhookSecret();
        const signature = digest.hmacSha256(secret, PAYLOAD);
        const stranger = digest.hmacSha256(newWebhookSecret(), PAYLOAD);
        const { post, events } = await startReceiver(context, command, file, secret);
        const delivery = { 'X-Service-Delivery': 'd1' };
        assert.equal(await post({ ...delivery }), 401, 'no signature');
        assert.equal(await post({ ...delivery, 'X-Service-Signature': '' }), 401);
        assert.equal(await post({ ...delivery, 'X-Service-Signature': stranger }), 401);
        assert.equal(await post({ ...delivery, 'X-Service-Signature': signature.slice(0, 62) }), 401);
        assert.equal(await post({ ...delivery, 'X-Service-Signature': signature }, `${PAYLOAD} `), 401, 'another body');
        assert.equal(events(), 0);
        assert.equal(await post({ ...delivery, 'X-Service-Signature': signature }), 204);
        assert.equal(await post({ ...delivery, 'X-Service-Signature': signature }), 204, 'the same delivery again');
        const changed = { 'X-Service-Signature': stranger, 'X-Service-Signature-Previous': signature };
        assert.equal(await post({ ...changed, 'X-Service-Delivery': 'd2' }), 204, 'the secret was changed');
        await sleep(50);
        assert.equal(events(), 2);
      },
    );
  }
});
