/**
 * Sends webhooks, in the one process that leads: requests deliveries for the log's pushes, and makes the due attempts.
 *
 * Invariants: both parts run together and end together, so that the next leader does both. When they end, running
 * attempts have a grace period to finish; those that do not are made again.
 */
import { ALL_REPOSITORIES } from '../../core/access-token/repository-selection.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { AccountId, WebhookId } from '../../core/kernel/ids.ts';
import type { Alarm, Pause } from '../../core/ports/clock.ts';
import type { DueDeliveries } from '../../core/ports/due-deliveries.ts';
import { waitUntilProjected } from '../../core/runtime/wait-until-projected.ts';
import { type AttemptContext, attemptDelivery } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { type FollowPushesContext, followPushes } from '../../core/use-cases/webhooks/follow-pushes.ts';
import { findWebhook } from '../../core/use-cases/webhooks/webhooks.ts';
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';
import { createDispatcher, type Dispatcher } from './dispatcher.ts';
import { onDeliveryEvents } from './on-delivery-events.ts';

export interface SendWebhooksOptions {
  readonly following: FollowPushesContext;
  readonly attempting: AttemptContext;
  readonly due: DueDeliveries;
  readonly alarm: Alarm;
  readonly pause: Pause;
  /** Called while no attempt can be made, because the read model of due deliveries is behind. */
  readonly onBehind: (cause: unknown) => void;
  /** Called when attempts start to be made. */
  readonly onStarted: () => void;
  /** Called for the failure of one attempt, which concerns its delivery only. */
  readonly onAttemptFault: (cause: unknown) => void;
}

/** How long a process that stops waits for running attempts. */
const CLOSE_GRACE_MS = 3_000;

/** Runs until the signal. Rejects if the log cannot be followed or the due deliveries cannot be read. */
export async function sendWebhooks(options: SendWebhooksOptions, signal: AbortSignal): Promise<void> {
  const { following, attempting, due, onBehind, onStarted } = options;
  const { events, entities } = attempting;
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  /** Aborted when running attempts are not waited for any more. */
  const givingUp = new AbortController();
  const dispatcher = newDispatcher(options, givingUp.signal);
  const head = await events.head();
  const subscription = events.subscribe({
    after: head,
    categories: [webhookDeliveries.category],
    onEvents: (batch) => onDeliveryEvents(entities, dispatcher, batch),
  });
  const policy = followPushes(following, ended);
  const start = async (): Promise<void> => {
    const caughtUp = (position: LogPosition): Promise<void> => due.deliveriesCaughtUp(position);
    if (!(await waitUntilProjected({ caughtUp, onBehind }, head, ended))) return;
    await dispatcher.start();
    onStarted();
  };
  try {
    await Promise.race([start(), policy, subscription.closed]);
    await Promise.race([policy, subscription.closed]);
  } finally {
    ending.abort();
    await Promise.allSettled([subscription.close(), policy]);
    await closeWithin(dispatcher, givingUp, options.pause);
  }
}

function newDispatcher(options: SendWebhooksOptions, givenUp: AbortSignal): Dispatcher {
  const { attempting, due, alarm, onAttemptFault } = options;
  return createDispatcher({
    due,
    clock: attempting.clock,
    alarm,
    attempt: (delivery) => attemptDelivery(attempting, delivery, givenUp),
    receiverOf: (account, webhook) => receiverOf(attempting, account, webhook),
    onFault: (cause) => {
      // An attempt that was given up is no failure.
      if (!givenUp.aborted) onAttemptFault(cause);
    },
  });
}

/** Gives up the attempts that still run after the grace period. */
async function closeWithin(dispatcher: Dispatcher, givingUp: AbortController, pause: Pause): Promise<void> {
  const waited = new AbortController();
  const closed = dispatcher.close().finally(() => waited.abort());
  await Promise.race([closed, pause(CLOSE_GRACE_MS, waited.signal)]);
  givingUp.abort();
  await closed;
}

/** Returns the host of the webhook's URL; a webhook without a readable URL shares its limit with no other. */
async function receiverOf(context: AttemptContext, account: AccountId, webhook: WebhookId): Promise<string> {
  const found = await findWebhook(context, { account, selection: ALL_REPOSITORIES }, webhook);
  return 'refused' in found || !URL.canParse(found.url) ? webhook : new URL(found.url).host;
}
