/**
 * The attack: receivers of every kind, most of them hostile. For each kind, all attempts of a delivery, on a clock that
 * the test moves, must follow the specification's tables (States and transitions; Delivery behavior).
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { createHttpEgress, type HttpEgressOptions } from '../../../adapters/http-egress/egress.ts';
import { createNameLookup } from '../../../adapters/http-egress/name-lookup.ts';
import { msBetween, type Timestamp } from '../../../core/kernel/ids.ts';
import { WEBHOOK_ATTEMPT_SPAN_MS } from '../../../core/kernel/limits.ts';
import type { WebhookDeliveryRow } from '../../../core/ports/webhook-delivery-lists.ts';
import { createAuthority } from '../../support/certificates.ts';
import { delivering } from '../../support/delivering.ts';
import { startDnsServer } from '../../support/dns-server.ts';
import { startReceiver } from '../../support/receiver.ts';
import { receiverKinds } from '../../support/receiver-kinds.ts';
import { advanceToNextAwaited } from '../../support/test-timers.ts';

/** The specification's figures, not the product's constants. */
const ATTEMPTS = 8;
const WAITS_SECONDS = [8, 16, 32, 64, 128, 256, 512];
/** How long an attempt takes on the test's clock, unless it times out. */
const TOOK_MS = 120;
/** The real time limit of an attempt that only the limit ends. */
const SHORT_SPAN_MS = 1_000;
const authority = createAuthority();

/** Delivers to a host; the returned functions move the clock from one attempt to the next. */
async function delivered(host: string, egress: Partial<HttpEgressOptions>, isSlow: boolean) {
  const outgoing = createHttpEgress({ ownUrls: [], privateAllowed: true, authorities: [authority.cert], ...egress });
  const bounds = new Set<string>();
  const on = await delivering(async ({ request }) => {
    bounds.add(`${request.spanMs} ms, ${request.answerBytesMax} bytes`);
    const exchange = await outgoing.send(isSlow ? { ...request, spanMs: SHORT_SPAN_MS } : request);
    on.node.clock.advance(isSlow ? WEBHOOK_ATTEMPT_SPAN_MS : TOOK_MS);
    return exchange;
  });
  const account = await on.account('ada');
  const webhook = await on.webhook(account, host);
  const id = await on.request(account, webhook);
  const row = async (): Promise<WebhookDeliveryRow> => {
    const [found] = await on.due.webhookDeliveries(account, webhook, 1);
    assert.ok(found !== undefined);
    return found;
  };
  const attempted = async (count: number): Promise<WebhookDeliveryRow> => {
    for (;;) {
      const found = await row();
      if (found.attemptLog.length >= count && on.running() === 0) return found;
      await sleep(5);
    }
  };
  /** Moves the clock to the next attempt; its timer may be set shortly after the previous attempt was recorded. */
  const toNext = async (): Promise<void> => {
    while (!advanceToNextAwaited(on.node.clock)) await sleep(5);
  };
  const toEnd = async (): Promise<WebhookDeliveryRow> => {
    for (let count = 1; ; count += 1) {
      const found = await attempted(count);
      if (found.status !== 'PENDING') return found;
      await toNext();
    }
  };
  const answers = async (series: number, attempt: number): Promise<Uint8Array> => {
    const found = await on.context.deliveries.answers([{ delivery: id, series, attempt }]);
    return found.get(id) ?? new Uint8Array();
  };
  return { on, bounds, attempted, toNext, toEnd, answers };
}

/** Returns the whole seconds from the end of each attempt to the next. */
function waits({ attemptLog }: WebhookDeliveryRow): readonly number[] {
  const ends = attemptLog.map(({ at, durationMs }): [Timestamp, number] => [at, durationMs]);
  return ends.slice(1).map(([at], index) => {
    const [before, durationMs] = ends[index] ?? [at, 0];
    return Math.round((msBetween(before, at) - durationMs) / 1_000);
  });
}

describe('Every attempt at a receiver that', { concurrent: true }, () => {
  for (const kind of receiverKinds('https://127.0.0.1:1/never')) {
    test(`${kind.what} ${kind.error === null ? 'is the only one' : `fails with ${kind.error}`}`, async (context) => {
      const port = await kind.start(context, authority);
      const isSlow = kind.error === 'timed-out' || kind.detail === 'answer-cut';
      const { on, bounds, toEnd, answers } = await delivered(`127.0.0.1:${port}`, {}, isSlow);
      const row = await toEnd();
      const attempts = kind.error === null ? 1 : ATTEMPTS;
      const outcomes = row.attemptLog.map(({ httpStatus, error }) => ({ httpStatus, error }));
      const { httpStatus, error } = kind;
      assert.deepEqual(outcomes, Array(attempts).fill({ httpStatus, error }));
      for (const { detail } of row.attemptLog) assert.equal(detail === 'answer-cut', kind.detail === 'answer-cut');
      assert.deepEqual([row.status, row.nextAttemptAt], [error === null ? 'SUCCESS' : 'FAILED', null]);
      assert.deepEqual(waits(row), WAITS_SECONDS.slice(0, attempts - 1));
      for (let attempt = 1; attempt <= attempts; attempt += 1) {
        // Only the last answer is kept.
        assert.equal((await answers(1, attempt)).length, attempt === attempts ? kind.keptBytes : 0);
      }
      assert.deepEqual([...bounds], [`30000 ms, ${16 * 1024} bytes`]);
      assert.deepEqual(on.faults, []);
    });
  }

  test('has no name, or a name server that fails or is silent, is repeated', async (context) => {
    const dns = await startDnsServer(context);
    dns.answer('failing.example', 'failing');
    dns.answer('silent.example', 'silent');
    const lookup = createNameLookup({ servers: [dns.address], hostsFile: '/nonexistent' });
    for (const [host, error] of [
      ['absent.example', 'name-not-found'],
      ['failing.example', 'name-lookup-failed'],
      ['silent.example', 'timed-out'],
    ] as const) {
      const { toEnd } = await delivered(host, { lookup }, error === 'timed-out');
      const row = await toEnd();
      assert.deepEqual(
        row.attemptLog.map(({ error: recorded }) => recorded),
        Array(ATTEMPTS).fill(error),
      );
      assert.deepEqual([row.status, waits(row)], ['FAILED', WAITS_SECONDS]);
    }
  });

  test('resolves to a private address by now is the last, and sends nothing', async (context) => {
    const dns = await startDnsServer(context);
    const receiver = await startReceiver(context, authority.issue(['receiver.example']));
    const lookup = createNameLookup({ servers: [dns.address], hostsFile: '/nonexistent' });
    dns.answer('receiver.example', 'absent');
    const strict = { lookup, privateAllowed: false };
    const { toEnd, attempted } = await delivered(`receiver.example:${receiver.port}`, strict, false);
    await attempted(1);
    dns.answer('receiver.example', ['93.184.216.34', '127.0.0.1']);
    const row = await toEnd();
    assert.deepEqual(
      row.attemptLog.map(({ error }) => error),
      ['name-not-found', 'address-not-public'],
    );
    assert.deepEqual([row.status, row.nextAttemptAt, receiver.serverNames], ['FAILED', null, []]);
  });

  test('recovers is the last', async (context) => {
    let failing = 3;
    const { port } = await startReceiver(context, authority.issue(['127.0.0.1']), (socket) => {
      failing -= 1;
      socket.end(`HTTP/1.1 ${failing >= 0 ? '503 Later' : '200 OK'}\r\nContent-Length: 0\r\n\r\n`);
    });
    const { toEnd } = await delivered(`127.0.0.1:${port}`, {}, false);
    const row = await toEnd();
    assert.deepEqual(
      row.attemptLog.map(({ httpStatus }) => httpStatus),
      [503, 503, 503, 200],
    );
    assert.deepEqual([row.status, waits(row)], ['SUCCESS', WAITS_SECONDS.slice(0, 3)]);
  });
});
