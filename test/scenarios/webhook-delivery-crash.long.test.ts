/** A server that is killed at each step of a delivery: nothing is lost, and at most one attempt is made twice. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { FaultPoint } from '../../core/ports/failpoints.ts';
import { createAccount, createRepository, newWorkTree, type Strata, tryGit } from '../support/strata.ts';
import { sharedParts, startNode } from '../support/strata-on-postgres.ts';
import { createWebhook, receiverHouse, untilDeliveries } from '../support/webhook-receiver.ts';

/** Longer than a claim stands whose process died. */
const SPAN_MS = 150_000;

const STEPS: readonly { readonly point: FaultPoint; readonly requests: number }[] = [
  { point: 'webhook-payload-stored', requests: 2 },
  { point: 'webhook-delivery-requested', requests: 2 },
  { point: 'webhook-attempt-claimed', requests: 2 },
  // The receiver had it and nobody knows: it comes again.
  { point: 'webhook-attempt-sent', requests: 3 },
  { point: 'webhook-attempt-recorded', requests: 2 },
];

describe('A server killed', { concurrency: true }, () => {
  for (const { point, requests } of STEPS) {
    test(`at ${point} delivers everything once it is back, in order`, async (context) => {
      const house = await receiverHouse(context);
      const strata = await startNode(context, await sharedParts(context), house.env);
      const ada = await createAccount(strata, 'ada');
      const receiver = await house.receiver();
      const webhook = await createWebhook(strata, ada, receiver.url);
      const remote = await createRepository(strata, ada, 'engine');
      const work = await newWorkTree(context);
      const fragile: Strata = await strata.restart({ STRATA_FAULT_POINT: point });
      // The server may die before it answers: the push is in the log by then.
      await tryGit(work, ['push', '--quiet', remote, 'main']);
      await fragile.exited();
      const again = await fragile.restart({ STRATA_FAULT_POINT: '' });

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
