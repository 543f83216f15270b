/**
 * Kills a server between a delivery's wait and the attempt after it: nothing is lost, nothing is sent early, and no
 * request is sent twice.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'vitest';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import type { Behaviour } from '../support/receiver.ts';
import { api, createAccount, type Strata } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import {
  answeringStatus,
  createWebhook,
  NO_CONTENT,
  untilDeliveries,
  webhookReceivers,
} from '../support/webhook-receiver.ts';

/** Longer than the claim of a dead process lasts. */
const SPAN_MS = 150_000;

/** The failpoints between a wait and the claim after it: at the step's start, and after the append of its event. */
const AROUND_DUE: readonly FailpointName[] = ['webhook-wait-over', 'webhook-attempt-due'];
const RETRY_WAIT_MS = 8_000;

describe('A server killed between a wait and the attempt after it', { concurrent: true }, () => {
  async function pinged(context: TestContext, point: FailpointName, ...behaviours: readonly Behaviour[]) {
    const receivers = await webhookReceivers(context);
    const parts = await sharedParts(context);
    const strata = await startNode(context, parts, receivers.env);
    const ada = await createAccount(strata, 'ada');
    const receiver = await receivers.start(...behaviours);
    const webhook = await createWebhook(strata, ada, receiver.url);
    const fragile: Strata = await strata.restart({ STRATA_FAILPOINT: point });
    await api(fragile, ada.token, 'POST', `/v1/webhooks/${webhook.id}/ping`);
    await fragile.exited();
    const types = async () =>
      (await parts.log.since())
        .map(({ type }) => type.replace('WebhookDelivery', ''))
        .filter((type) => /^(Requested|Attempt|Succeeded)/.test(type))
        .join(' ');
    const delivered = (on: Strata) =>
      untilDeliveries(on, ada, webhook.id, ([only]) => only?.status === 'SUCCESS', SPAN_MS);
    return { fragile, receiver, types, delivered };
  }

  for (const point of AROUND_DUE) {
    test(`at ${point} makes the next attempt once, not before its time`, async (context) => {
      const failing = answeringStatus(500);
      const { fragile, receiver, types, delivered } = await pinged(context, point, failing, NO_CONTENT);
      const [delivery] = await delivered(await fragile.restart({ STRATA_FAILPOINT: '' }));
      const [one, two] = delivery?.attempt_log ?? [];
      assert.ok(one !== undefined && two !== undefined);
      assert.ok(Date.parse(two.at) - Date.parse(one.at) - one.duration_ms >= RETRY_WAIT_MS);
      const [first, second, ...more] = receiver.received;
      assert.deepEqual([second?.raw, second?.headers, more], [first?.raw, first?.headers, []]);
      assert.equal(
        await types(),
        'Requested AttemptClaimed Attempted AttemptFellDue AttemptClaimed Attempted Succeeded',
      );
    });

    test(`at ${point} makes an attempt whose process died in it, after its claim has lapsed`, async (context) => {
      const { fragile, receiver, types, delivered } = await pinged(context, 'webhook-attempt-claimed');
      const second = await fragile.restart({ STRATA_FAILPOINT: point });
      await second.exited();
      const [delivery] = await delivered(await second.restart({ STRATA_FAILPOINT: '' }));
      assert.equal(delivery?.attempts, 1);
      assert.equal(receiver.received.length, 1);
      assert.equal(await types(), 'Requested AttemptClaimed AttemptFellDue AttemptClaimed Attempted Succeeded');
    });
  }
});
