/** Kills a server at each step of a delivery: no delivery is lost, and at most one attempt is made twice. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import { killSample } from '../support/kill-sample.ts';
import { createAccount, createRepository, newWorkTree, type Strata, tryGit } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { createWebhook, untilDeliveries, webhookReceivers } from '../support/webhook-receiver.ts';

/** Longer than the claim of a dead process lasts. */
const SPAN_MS = 150_000;

const STEPS: readonly { readonly point: FailpointName; readonly requests: number }[] = [
  { point: 'webhook-payload-stored', requests: 2 },
  { point: 'webhook-delivery-requested', requests: 2 },
  { point: 'webhook-attempt-claimed', requests: 2 },
  // The receiver got the request, but the server did not record it, so it is sent again.
  { point: 'webhook-attempt-sent', requests: 3 },
  { point: 'webhook-attempt-recorded', requests: 2 },
];

describe('A server killed', { concurrent: true }, () => {
  const sample = killSample(STEPS.map(({ point }) => point));
  for (const { point, requests } of STEPS) {
    test(`at ${point} delivers everything in order after its restart`, sample(point), async (context) => {
      const receivers = await webhookReceivers(context);
      const strata = await startNode(context, await sharedParts(context), receivers.env);
      const ada = await createAccount(strata, 'ada');
      const receiver = await receivers.start();
      const webhook = await createWebhook(strata, ada, receiver.url);
      const remote = await createRepository(strata, ada, 'engine');
      const work = await newWorkTree(context);
      const fragile: Strata = await strata.restart({ STRATA_FAILPOINT: point });
      // The server may die before it answers: the push is in the log by then.
      await tryGit(work, ['push', '--quiet', remote, 'main']);
      await fragile.exited();
      const again = await fragile.restart({ STRATA_FAILPOINT: '' });

      const deliveries = await untilDeliveries(
        again,
        ada,
        webhook.id,
        (list) => list.length === 2 && list.every(({ status }) => status === 'SUCCESS'),
        SPAN_MS,
      );
      assert.deepEqual(
        deliveries.map(({ event, attempts }) => [event, attempts]),
        [
          ['push', 1],
          ['create', 1],
        ],
      );
      const { received } = receiver;
      assert.equal(received.length, requests);
      const events = received.map(({ payload }) => payload.type);
      assert.deepEqual(events, requests === 3 ? ['create', 'create', 'push'] : ['create', 'push']);
      const [first, second] = received;
      if (requests === 3) assert.deepEqual([second?.raw, second?.headers], [first?.raw, first?.headers]);
    });
  }
});
