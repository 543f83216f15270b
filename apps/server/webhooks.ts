/**
 * Everything that sends webhooks, in the one process of all that leads: the policy that tells of pushes, the dispatcher that
 * makes the attempts, and the removal of bodies after retention.
 *
 * Must stay true: nothing here is needed to serve a request; any number of processes may start it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Logger } from 'pino';
import { createAlarm } from '../../adapters/node/alarm.ts';
import { createPostgresDeliveryStore, createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresLead } from '../../adapters/postgres/lead.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresSnapshots } from '../../adapters/postgres/snapshots.ts';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import { type AccountId, plusMs, type WebhookId } from '../../core/kernel/ids.ts';
import type { Alarm } from '../../core/ports/clock.ts';
import type { DeliveryStore } from '../../core/ports/delivery-store.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { DueDeliveries } from '../../core/ports/read-models.ts';
import { type AttemptContext, attemptDelivery } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { type FollowPushesContext, followPushes } from '../../core/use-cases/webhooks/follow-pushes.ts';
import { createPastEntities } from '../../core/runtime/past-entities.ts';
import { untilShown } from '../../core/use-cases/until-shown.ts';
import { findWebhook } from '../../core/use-cases/webhooks/webhooks.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/wide-refs.ts';
import { webhookDeliveries } from '../../core/webhook-delivery/evolve.ts';
import { createDispatcher } from '../../workflows/webhook-delivery/dispatcher.ts';
import { hear } from '../../workflows/webhook-delivery/on-delivery-events.ts';
import { closer, type Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import { every } from './periodic.ts';
import { createDuty, type Duty, type StartedPart } from './readiness.ts';

const RETENTION_INTERVAL_MS = 10 * 60_000;
const REMOVED_AT_ONCE_MAX = 1_000;
const DAY_MS = 24 * 60 * 60_000;
/** A server that stops waits so long for attempts under way; those it leaves are made again. */
const CLOSE_SPAN_MS = 3_000;

export interface WebhooksOptions {
  readonly foundation: Foundation;
  readonly deliveries: DeliveryStore;
  readonly objects: Pick<ObjectDatabase, 'open'>;
  readonly outgoing: OutgoingRequests;
  readonly due: DueDeliveries;
  readonly webUrl: string;
  /** Of this program, for the user agent. */
  readonly version: string;
  readonly retentionDays: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** Starts them. */
export function startWebhooks(options: WebhooksOptions): StartedPart {
  const { foundation, deliveries, due, retentionDays, metrics, log, onFault } = options;
  const { context, connectionString } = foundation;
  const parts = closer();
  const telling = createDuty(() => context.clock.monotonicMs());
  /** What all attempts wait for; a fault of one is its delivery's alone. */
  const sending = createDuty(() => context.clock.monotonicMs());
  // Of its own: the lock keeps a connection for good.
  const pool = createPool({ connectionString, log, connectionsMax: 1 });
  parts.add(() => pool.end());
  const retentionMs = retentionDays * DAY_MS;
  const alarm = createAlarm(context.clock);
  const shared = { ...context, deliveries, log };
  const complete = (event: RecordedEvent) => withUpdatesInPlace(context, event);
  const past = createPastEntities({
    ...{ events: context.events, entities: context.entities, complete },
    snapshots: createPostgresSnapshots(foundation.pool),
    onFault,
  });
  const following: FollowPushesContext = {
    ...{ ...shared, past, complete, retentionMs, objects: options.objects, webUrl: options.webUrl },
    marks: watchedMarks(createPostgresPolicyMarks(foundation.pool), telling),
    pause: (ms, signal) => alarm.until(plusMs(context.clock.now(), ms), signal),
    onFault: (cause) => {
      telling.fails();
      onFault('webhook-notifications', cause);
    },
  };
  const attempting: AttemptContext = {
    ...{ ...shared, outgoing: options.outgoing },
    agent: `Strata-Webhook/${options.version}`,
    onAttempted: metrics.webhookAttempted,
  };
  const notSending = (cause: unknown): void => {
    sending.fails();
    onFault('webhook-deliveries', cause);
  };
  const work = async (signal: AbortSignal): Promise<void> => {
    try {
      await lead({
        ...{ following, attempting, due, alarm, signal },
        onBehind: notSending,
        onStarted: () => sending.works(),
        onAttemptFault: (cause) => onFault('webhook-attempts', cause),
      });
    } catch (error) {
      if (!signal.aborted) notSending(error);
    }
  };
  parts.add(createPostgresLead({ pool, log }).whenever('webhook-deliveries', work));
  const removeOld = async (signal: AbortSignal): Promise<void> => {
    const before = plusMs(context.clock.now(), -retentionMs);
    while (!signal.aborted && (await deliveries.removeBefore(before, REMOVED_AT_ONCE_MAX)) > 0);
  };
  parts.add(every(RETENTION_INTERVAL_MS, removeOld, (cause) => onFault('webhook-retention', cause)));
  const isDegraded = (): boolean => telling.isDegraded() || sending.isDegraded();
  return { duty: { isDegraded }, stop: () => parts.close() };
}

/** Marks that say when pushes are told of again: one is saved as soon as that goes on. */
function watchedMarks(marks: PolicyMarks, telling: Duty): PolicyMarks {
  return {
    read: (policy) => marks.read(policy),
    save: async (policy, mark) => {
      await marks.save(policy, mark);
      telling.works();
    },
  };
}

/** The bodies of deliveries, also for those who list them. */
export function composeDeliveryStore({ pool }: Foundation): DeliveryStore {
  return createPostgresDeliveryStore(pool);
}

interface Leading {
  readonly following: FollowPushesContext;
  readonly attempting: AttemptContext;
  readonly due: DueDeliveries;
  readonly alarm: Alarm;
  readonly signal: AbortSignal;
  /** The dispatcher cannot start yet: its read model is behind. */
  readonly onBehind: (cause: unknown) => void;
  /** Attempts are made from now on. */
  readonly onStarted: () => void;
  readonly onAttemptFault: (cause: unknown) => void;
}

/** Follows the log and dispatches, until the signal or until either breaks. */
async function lead(leading: Leading): Promise<void> {
  const { following, attempting, due, alarm, signal, onBehind } = leading;
  const { events, clock, entities } = attempting;
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  /** Aborted once attempts under way are no longer waited for. */
  const leaving = new AbortController();
  const dispatcher = createDispatcher({
    ...{ due, clock, alarm },
    attempt: (delivery) => attemptDelivery(attempting, delivery, leaving.signal),
    receiverOf: (account, webhook) => receiverOf(attempting, account, webhook),
    onFault: (cause) => {
      // An attempt that was left is no fault.
      if (!leaving.signal.aborted) leading.onAttemptFault(cause);
    },
  });
  const head = await events.head();
  const subscription = events.subscribe({
    after: head,
    categories: [webhookDeliveries.category],
    onEvents: (batch) => hear(entities, dispatcher, batch),
  });
  const policy = followPushes(following, ended);
  const start = async (): Promise<void> => {
    const caughtUp = (position: LogPosition): Promise<void> => due.seen(position);
    if (!(await untilShown({ caughtUp, onBehind }, head, ended))) return;
    await dispatcher.start();
    leading.onStarted();
  };
  try {
    await Promise.race([start(), policy, subscription.closed]);
    await Promise.race([policy, subscription.closed]);
  } finally {
    ending.abort();
    await Promise.allSettled([subscription.close(), policy]);
    const closed = dispatcher.close();
    await Promise.race([closed, sleep(CLOSE_SPAN_MS, undefined, { ref: false })]);
    leaving.abort();
    await closed;
  }
}

/** The host of the webhook's URL; one without a URL any more shares with nobody. */
async function receiverOf(context: AttemptContext, account: AccountId, webhook: WebhookId): Promise<string> {
  const found = await findWebhook(context, account, webhook);
  return 'refused' in found || !URL.canParse(found.url) ? webhook : new URL(found.url).host;
}
