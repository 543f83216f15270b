/**
 * When attempts are made, in which order, and which wait for which: dispatcher and engine on a clock that the test
 * moves.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { uuids } from '../../../adapters/node/ids.ts';
import { newWebhookSecret } from '../../../adapters/node/webhook-secret.ts';
import { ALL_REPOSITORIES } from '../../../core/access-token/repository-selection.ts';
import { type LogPosition, streamName } from '../../../core/kernel/envelope.ts';
import type { Exchange } from '../../../core/kernel/exchange.ts';
import {
  type AccountId,
  msBetween,
  plusMs,
  type RepositoryId,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../../core/kernel/ids.ts';
import type { JsonObject } from '../../../core/kernel/json.ts';
import type { DueDeliveryRow } from '../../../core/ports/due-deliveries.ts';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { redeliver } from '../../../core/use-cases/webhooks/webhook-deliveries.ts';
import {
  changeWebhook,
  deleteWebhook,
  rotateWebhookSecret,
  WEBHOOK_SECRET_OVERLAP_MS,
} from '../../../core/use-cases/webhooks/webhooks.ts';
import { WEBHOOK_CLAIM_SPAN_MS } from '../../../core/webhook-delivery/decide.ts';
import {
  createDispatcher,
  WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX,
  WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX,
} from '../../../workflows/webhook-delivery/dispatcher.ts';
import { WEBHOOK_WINDOW_DELIVERIES_MAX } from '../../../workflows/webhook-delivery/limits.ts';
import { accepted } from '../../support/accounts.ts';
import { delivering, NO_CONTENT, TIMED_OUT } from '../../support/delivering.ts';
import { newEvent, newId } from '../../support/events.ts';
import { CAUSE } from '../../support/node.ts';
import { createTestClock } from '../../support/test-clock.ts';
import { advanceToNextAwaited, eventually } from '../../support/test-timers.ts';
import { gate, settle } from '../../support/watched-log.ts';

const never = (): Promise<Exchange> => new Promise(() => undefined);

type Delivering = Awaited<ReturnType<typeof delivering>>;

/** Moves the clock from one awaited time to the next until the condition holds. */
function pastWaits(on: Delivering, isSo: () => boolean): Promise<void> {
  return eventually(async () => {
    await settle();
    if (isSo()) return true;
    if (on.running() === 0) advanceToNextAwaited(on.node.clock);
    return false;
  });
}

describe('The dispatcher', () => {
  test('makes first attempts beyond the budget of the hour at their time, in their order, and nothing waits for them', async () => {
    const on = await delivering(() => NO_CONTENT);
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'ok.example');
    const { clock, ids } = on.node;
    const [one, other] = [ids.next<RepositoryId>(), ids.next<RepositoryId>()];
    const notBefore = plusMs(clock.now(), 1_800_000);
    const late: WebhookDeliveryId[] = [];
    for (let count = 0; count < 5; count += 1) late.push(await on.request(account, webhook, one, notBefore));
    const early = await on.request(account, webhook, other);
    // The state after a larger plan: it is due, and its repository's earlier ones are not.
    const behind = await on.request(account, webhook, one);
    await eventually(() => on.sent.length === 1 && on.running() === 0);
    assert.equal(on.sent[0]?.delivery, early);
    await eventually(() => clock.awaited().includes(notBefore));
    clock.set(plusMs(notBefore, -1));
    await settle();
    assert.equal(on.sent.length, 1, 'not a millisecond early');
    clock.set(notBefore);
    await eventually(() => on.sent.length === 7);
    assert.deepEqual(
      on.sent.slice(1).map(({ delivery }) => delivery),
      [...late, behind],
    );
    assert.deepEqual(on.faults, []);
  });

  test('signs with the previous secret too until its time is over, and not from then on', async () => {
    const on = await delivering(() => NO_CONTENT);
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'receiver.example');
    const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
    accepted(await rotateWebhookSecret(on.context, origin, webhook, newWebhookSecret()));
    const isSignedTwice: boolean[] = [];
    for (const laterMs of [WEBHOOK_SECRET_OVERLAP_MS - 1, 1]) {
      on.node.clock.advance(laterMs);
      await on.request(account, webhook);
      await eventually(() => on.sent.length > isSignedTwice.length && on.running() === 0);
      isSignedTwice.push(on.sent.at(-1)?.request.headers['x-service-signature-previous'] !== undefined);
    }
    assert.deepEqual(isSignedTwice, [true, false]);
  });

  test('makes eight attempts, each 8 to 512 seconds after the end of the previous one, and then no more', async () => {
    const on = await delivering(() => {
      // Each attempt takes as long as it may.
      on.node.clock.advance(30_000);
      return TIMED_OUT;
    });
    const account = await on.account('ada');
    const id = await on.request(account, await on.webhook(account, 'dead.example'));
    const { clock } = on.node;
    for (const [index, waitSeconds] of [8, 16, 32, 64, 128, 256, 512].entries()) {
      await eventually(() => on.sent.length === index + 1 && on.running() === 0);
      const dueAt = plusMs(clock.now(), waitSeconds * 1_000);
      await eventually(() => clock.awaited().join() === dueAt);
      clock.set(plusMs(dueAt, -1));
      await settle();
      assert.equal(on.sent.length, index + 1, 'not a millisecond early');
      clock.set(dueAt);
    }
    await eventually(() => on.sent.length === 8 && on.running() === 0);
    await eventually(() => clock.awaited().length === 0);
    const starts = on.sent.map(({ at }) => msBetween(on.sent[0]?.at ?? at, at));
    const expected = [0];
    for (const wait of [8, 16, 32, 64, 128, 256, 512]) expected.push((expected.at(-1) ?? 0) + 30_000 + wait * 1_000);
    assert.deepEqual(starts, expected);
    assert.equal((await on.stateOf(id)).status, 'failed');
    const bytes = new Set(on.sent.map(({ request }) => Buffer.from(request.body ?? []).toString()));
    const signatures = new Set(on.sent.map(({ request }) => request.headers['x-service-signature']));
    assert.deepEqual([bytes.size, signatures.size, new Set(on.sent.map(({ delivery }) => delivery)).size], [1, 1, 1]);
    const url = 'dead.example';
    assert.ok(on.logged.length === 8 && on.logged.every((line) => line.includes(id) && !line.includes(url)));
  });

  test('makes first attempts of one repository one after another, in their order, and others beside them', async () => {
    const answers: ((exchange: Exchange) => void)[] = [];
    const on = await delivering(() => new Promise((resolve) => answers.push(resolve)));
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'slow.example');
    const [engine, notes] = [on.node.ids.next<RepositoryId>(), on.node.ids.next<RepositoryId>()];
    const first = await on.request(account, webhook, engine);
    const second = await on.request(account, webhook, engine);
    const third = await on.request(account, webhook, engine);
    const other = await on.request(account, webhook, notes);
    await eventually(() => on.sent.length === 2);
    assert.deepEqual(
      on.sent.map(({ delivery }) => delivery),
      [first, other],
    );
    // After a failed first attempt the next delivery starts: the failed one's retry is no first attempt.
    answers[0]?.(TIMED_OUT);
    await eventually(() => on.sent.length === 3);
    answers[2]?.(NO_CONTENT);
    await eventually(() => on.sent.length === 4);
    assert.deepEqual(
      on.sent.slice(2).map(({ delivery }) => delivery),
      [second, third],
    );
  });

  test('delays no healthy receiver because of a dead one with hundreds of deliveries', async () => {
    const on = await delivering(({ host }) => (host === 'dead.example' ? never() : NO_CONTENT));
    const [mallory, ada] = [await on.account('mallory'), await on.account('ada')];
    const dead = [await on.webhook(mallory, 'dead.example'), await on.webhook(mallory, 'dead.example')];
    for (const webhook of dead) {
      for (let count = 0; count <= WEBHOOK_WINDOW_DELIVERIES_MAX; count += 1) await on.request(mallory, webhook);
    }
    const healthy = await on.webhook(ada, 'healthy.example');
    const own = await on.webhook(mallory, 'healthy.example');
    const wanted: WebhookDeliveryId[] = [];
    for (let count = 0; count < 20; count += 1) {
      wanted.push(await on.request(ada, healthy, on.node.ids.next<RepositoryId>()));
      wanted.push(await on.request(mallory, own));
    }
    const sentTo = (host: string) => on.sent.filter((one) => one.host === host);
    await eventually(() => sentTo('healthy.example').length === wanted.length);
    assert.deepEqual(
      sentTo('healthy.example')
        .map(({ delivery }) => delivery)
        .toSorted(),
      wanted.toSorted(),
    );
    assert.equal(sentTo('dead.example').length, WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX);
  });

  test('runs a bounded number of attempts of one account at the same time, however many receivers it has', async () => {
    const on = await delivering(({ host }) => (host.endsWith('.dead.example') ? never() : NO_CONTENT));
    const [mallory, ada] = [await on.account('mallory'), await on.account('ada')];
    for (let host = 0; host < 4; host += 1) {
      const webhook = await on.webhook(mallory, `${host}.dead.example`);
      for (let count = 0; count < WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX; count += 1) await on.request(mallory, webhook);
    }
    await on.request(ada, await on.webhook(ada, 'healthy.example'));
    await eventually(() => on.sent.some(({ host }) => host === 'healthy.example'));
    await eventually(() => on.running() === WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX);
    assert.equal(on.sent.length, WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX + 1);
  });

  test('delivers more deliveries than its window holds, each once', async () => {
    const on = await delivering(() => NO_CONTENT);
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'healthy.example');
    const repository = on.node.ids.next<RepositoryId>();
    const wanted: WebhookDeliveryId[] = [];
    for (let count = 0; count < 3 * WEBHOOK_WINDOW_DELIVERIES_MAX; count += 1) {
      wanted.push(await on.request(account, webhook, repository));
    }
    await eventually(() => on.sent.length >= wanted.length && on.running() === 0);
    assert.deepEqual(
      on.sent.map(({ delivery }) => delivery),
      wanted,
    );
    assert.deepEqual(on.faults, []);
  });

  test('queries nothing while deliveries wait: the engine sets one alarm for all of them', async () => {
    const on = await delivering(() => TIMED_OUT);
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'dead.example');
    for (let count = 0; count < 50; count += 1) await on.request(account, webhook);
    await eventually(() => on.sent.length === 50 && on.running() === 0);
    const dueAt = plusMs(on.node.clock.now(), 8_000);
    await eventually(() => on.node.clock.awaited().join() === dueAt);
    const { reads, heads } = on.log.counts;
    for (let turn = 0; turn < 100; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([on.log.counts.reads, on.log.counts.heads], [reads, heads]);
    assert.deepEqual(on.node.clock.awaited(), [dueAt]);
  });

  test('makes a new first attempt immediately although more retries wait than its window holds', async () => {
    let answer: Exchange = TIMED_OUT;
    const on = await delivering(() => answer);
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'receiver.example');
    const retries = WEBHOOK_WINDOW_DELIVERIES_MAX + 20;
    for (let count = 0; count < retries; count += 1) await on.request(account, webhook);
    await eventually(() => on.sent.length === retries && on.running() === 0);
    answer = NO_CONTENT;
    const late = await on.request(account, webhook);
    await eventually(() => on.sent.length === retries + 1);
    assert.equal(on.sent.at(-1)?.delivery, late);
    await pastWaits(on, () => on.sent.length === 2 * retries + 1);
    await eventually(async () => (await on.due.backlog()).pending === 0);
  });

  test('continues after a restart with due deliveries, and with a claimed one after its claim expired', async () => {
    let dies = true;
    const on = await delivering(() => (dies ? never() : NO_CONTENT));
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'receiver.example');
    const repository = on.node.ids.next<RepositoryId>();
    const claimed = await on.request(account, webhook, repository);
    const waiting = await on.request(account, webhook, repository);
    await eventually(() => on.sent.length === 1);
    dies = false;
    const claimedAt = on.node.clock.now();
    await on.takeOver();
    await settle();
    assert.equal(on.sent.length, 1, "the repository's first delivery is claimed: the next one waits for it");
    await pastWaits(on, () => on.sent.length === 3);
    assert.deepEqual(
      on.sent.map(({ delivery }) => delivery),
      [claimed, claimed, waiting],
    );
    assert.equal(msBetween(claimedAt, on.node.clock.now()), WEBHOOK_CLAIM_SPAN_MS);
    await eventually(async () => (await on.stateOf(waiting)).status === 'succeeded');
  });

  test('continues what an earlier version left: waiting, claimed, and claimed twice without an event between', async () => {
    const on = await delivering(() => NO_CONTENT);
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'receiver.example');
    const now = on.node.clock.now();
    const event = (type: string, data: JsonObject) => newEvent({ type, accountId: account, occurredAt: now, data });
    const claimed = (attempt: number) =>
      event('WebhookDeliveryAttemptClaimed', {
        ...{ series: 1, attempt, claim_id: newId(), until: plusMs(now, WEBHOOK_CLAIM_SPAN_MS) },
      });
    const attempted = () =>
      event('WebhookDeliveryAttempted', {
        ...{ series: 1, attempt: 1, started_at: now, duration_ms: 5, outcome: 'failed', http_status: 500 },
        ...{ error: 'status-not-2xx', detail: null, answer_sha256: null },
      });
    const histories = () => [
      [claimed(1), attempted()],
      [claimed(1), claimed(1)],
      [claimed(1), attempted(), claimed(2), claimed(2)],
    ];
    const upgrade = gate();
    on.log.on.deliver = () => upgrade.passed;
    const ids: WebhookDeliveryId[] = [];
    for (const events of histories()) {
      const id = await on.request(account, webhook);
      await on.log.append({ stream: streamName('webhookDelivery', id), expected: 0, events });
      ids.push(id);
    }
    upgrade.open();
    await settle();
    assert.deepEqual(on.sent, [], 'nothing is due yet');
    await pastWaits(on, () => on.sent.length === 3);
    for (const id of ids) await eventually(async () => (await on.stateOf(id)).status === 'succeeded');
    assert.deepEqual(
      on.sent.map(({ at }) => msBetween(now, at)),
      [8_005, WEBHOOK_CLAIM_SPAN_MS, WEBHOOK_CLAIM_SPAN_MS],
    );
    assert.deepEqual(on.faults, []);
  });

  test('makes an attempt again when its record was lost in an outage, with the same bytes', async () => {
    const on = await delivering(() => NO_CONTENT);
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'receiver.example');
    let fails = true;
    on.log.on.append = ({ events }) => {
      if (fails && events.some(({ type }) => type === 'WebhookDeliveryAttempted')) {
        fails = false;
        throw new EventStoreError('log-unavailable', 'away');
      }
    };
    const id = await on.request(account, webhook);
    await eventually(() => on.faults.length === 1);
    await pastWaits(on, () => on.sent.length === 2);
    await eventually(async () => (await on.stateOf(id)).status === 'succeeded');
    const [one, two] = on.sent;
    assert.deepEqual([two?.request.headers, two?.request.body], [one?.request.headers, one?.request.body]);
  });

  test('gives up at the next attempt if the webhook was deactivated, deleted, or has a private address', async () => {
    const outcomes = new Map<string, Exchange>();
    const on = await delivering(({ host }) => outcomes.get(host) ?? TIMED_OUT);
    const account = await on.account('ada');
    const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
    const hosts = ['inactive.example', 'deleted.example', 'astray.example'] as const;
    const [inactive, deleted, astray] = await Promise.all(hosts.map((host) => on.webhook(account, host)));
    assert.ok(inactive !== undefined && deleted !== undefined && astray !== undefined);
    const ids = [
      await on.request(account, inactive),
      await on.request(account, deleted),
      await on.request(account, astray),
    ];
    await eventually(() => on.sent.length === 3 && on.running() === 0);
    accepted(await changeWebhook(on.context, origin, inactive, { active: false }, 'unused'));
    accepted(await deleteWebhook(on.context, origin, deleted));
    outcomes.set('astray.example', { outcome: 'refused', fault: 'address-not-public' });
    await eventually(() => on.node.clock.awaited().length === 1);
    advanceToNextAwaited(on.node.clock);
    for (const id of ids) await eventually(async () => (await on.stateOf(id)).status === 'failed');
    assert.equal(on.sent.length, 4, 'nothing was sent to the first two');
    const errors: readonly string[] = on.logged.slice(3).map((line) => JSON.parse(line).error);
    assert.deepEqual(errors.toSorted(), ['address-not-public', 'webhook-deleted', 'webhook-inactive']);
  });

  test('makes eight more attempts after a redelivery, under the same id', async () => {
    const on = await delivering(() => ({ ...NO_CONTENT, status: 500 }));
    const account = await on.account('ada');
    const webhook = await on.webhook(account, 'receiver.example');
    const id = await on.request(account, webhook);
    const exhaust = async (total: number) => {
      await pastWaits(on, () => on.sent.length === total);
      await eventually(async () => (await on.stateOf(id)).status === 'failed');
    };
    await exhaust(8);
    accepted(
      await redeliver(
        { ...on.node, ...on.context },
        { account, cause: CAUSE, selection: ALL_REPOSITORIES },
        webhook,
        id,
      ),
    );
    await exhaust(16);
    assert.equal(new Set(on.sent.map(({ delivery }) => delivery)).size, 1);
    const [row] = await on.due.webhookDeliveries(account, webhook, 1);
    assert.equal(row?.attemptLog.length, 16);
    assert.deepEqual(
      row.attemptLog.map(({ series }) => series),
      [...Array(8).fill(1), ...Array(8).fill(2)],
    );
  });

  test('blocks nothing for an attempt that was recorded while the window was read', async () => {
    const webhook = uuids.next<WebhookId>();
    const [account, repository] = [uuids.next<AccountId>(), uuids.next<RepositoryId>()];
    const [before, next] = [uuids.next<WebhookDeliveryId>(), uuids.next<WebhookDeliveryId>()];
    const rowsAt = (position: bigint): readonly DueDeliveryRow[] => {
      const behind = { id: next, account, repository, isFirst: true, isDue: true };
      // Claimed and not yet recorded: later first attempts wait for it.
      return position < 14n ? [{ ...behind, id: before, isDue: false }, behind] : [behind];
    };
    const reading = gate();
    let position = 0n;
    const attempted: WebhookDeliveryId[] = [];
    const clock = createTestClock();
    const dispatcher = createDispatcher({
      due: {
        deliveriesCaughtUp: async (wanted) => void (position = wanted),
        dueWebhooks: async () => [],
        dueDeliveries: async () => {
          const rows = rowsAt(position);
          await reading.passed;
          return rows;
        },
        backlog: () => assert.fail('This test needs no backlog'),
      },
      ...{
        clock,
        alarm: clock,
        receiverOf: async () => 'receiver.example',
        onFault: (cause) => assert.fail(String(cause)),
      },
      attempt: async ({ id }) => {
        attempted.push(id);
        return { dueAt: null, isFirst: false, position: 16n as LogPosition };
      },
    });
    dispatcher.due({ id: next, webhook, account, position: 13n as LogPosition }, 'first');
    await settle();
    dispatcher.recorded({ id: before, webhook, account, position: 14n as LogPosition });
    reading.open();
    await eventually(() => attempted.length === 1);
    assert.deepEqual(attempted, [next]);
    await dispatcher.close();
  });
});
