/**
 * Sends webhooks, in the one process that leads, and removes the bodies of deliveries after retention.
 *
 * Invariants: no request depends on this. Any number of processes may start it.
 */
import type { Logger } from 'pino';
import { createAlarm } from '../../adapters/node/alarm.ts';
import { pause } from '../../adapters/node/pause.ts';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresLead } from '../../adapters/postgres/lead.ts';
import { createPostgresNotifiedPushes } from '../../adapters/postgres/notified-pushes.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { createPostgresWaitingPushes } from '../../adapters/postgres/waiting-pushes.ts';
import type { RecordedEvent } from '../../core/kernel/envelope.ts';
import { BUCKET_BACKGROUND_REST_MS } from '../../core/kernel/limits.ts';
import { createRecentCounts } from '../../core/kernel/recent-counts.ts';
import type { DueDeliveries, EndedDeliveries, PendingDeliveries } from '../../core/ports/due-deliveries.ts';
import type { ObjectDatabase } from '../../core/ports/object-database.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { DroppingContext } from '../../core/use-cases/compacting/drop-unreached.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import type { AttemptContext } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { hourOf } from '../../core/use-cases/webhooks/delivery-budget.ts';
import type { FollowPushesContext } from '../../core/use-cases/webhooks/follow-pushes.ts';
import { boundBodies } from '../../core/use-cases/webhooks/limit-stored-bodies.ts';
import { PENDING_BOUNDS } from '../../core/use-cases/webhooks/pending-delivery-limit.ts';
import { removeOldDeliveries } from '../../core/use-cases/webhooks/remove-old-deliveries.ts';
import { sendWebhooks } from '../../workflows/webhook-delivery/send-webhooks.ts';
import { startPeriodic } from './background.ts';
import { closer } from './closer.ts';
import type { Foundation } from './foundation.ts';
import type { Metrics } from './metrics.ts';
import { composePastEntities } from './past-entities.ts';
import type { StartedPart } from './readiness.ts';
import { createWebhookHealth, type WebhookHealth } from './webhook-health.ts';

/** How long work behind pushes waits for a bucket of a user. Internal: it is the pace of background work. */
const BUCKET_BACKGROUND_WAIT_MS = 10_000;

/** Buckets whose failures are remembered. Internal: a forgotten bucket is tried again. */
const BUCKETS_REMEMBERED_MAX = 1_000;

export interface WebhooksOptions {
  readonly foundation: Foundation;
  readonly objects: Pick<ObjectDatabase, 'open'>;
  readonly outgoing: OutgoingRequests;
  readonly due: DueDeliveries & PendingDeliveries & EndedDeliveries;
  readonly webUrl: string;
  /** The version of this program, for the user agent. */
  readonly version: string;
  readonly retentionMs: number;
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly onFault: (what: string, cause: unknown) => void;
}

/** Starts sending webhooks and removing old bodies. */
export function startWebhooks(options: WebhooksOptions): StartedPart {
  const { foundation, due, retentionMs, metrics, log, onFault } = options;
  const { context, connectionString } = foundation;
  const parts = closer();
  const health = createWebhookHealth(() => context.clock.monotonicMs());
  // A pool of its own: the leader's lock keeps its connection for as long as it leads.
  const pool = createPool({ connectionString, log, connectionsMax: 1 });
  parts.add(() => pool.end());
  const lead = createPostgresLead({ pool, pause, log });
  parts.add(lead.whenever('webhook-deliveries', sendingOf(options, health)));
  const retention = { ...context, due, retentionMs };
  const start = startPeriodic<'worker'>({ onFault, metrics }, parts);
  start('webhook-retention', async (signal) => {
    await removeOldDeliveries(retention, signal);
    await context.budgets.removeBefore(hourOf(context.clock.now()));
  });
  start('webhook-bodies', async (signal) => {
    await boundBodies(retention, signal);
  });
  return { health, stop: () => parts.close() };
}

/** Returns the work of the leading process. It never rejects, so that each fault is reported once. */
function sendingOf(options: WebhooksOptions, health: WebhookHealth): (signal: AbortSignal) => Promise<void> {
  const { due, onFault } = options;
  const following = followingOf(options, health);
  const attempting = attemptingOf(options);
  const alarm = createAlarm(attempting.clock);
  const onBehind = (cause: unknown): void => {
    health.sendingFails();
    onFault('webhook-deliveries', cause);
  };
  const onStarted = (): void => health.sendingWorks();
  const onAttemptFault = (cause: unknown): void => onFault('webhook-attempts', cause);
  const sending = { following, attempting, due, alarm, pause, onBehind, onStarted, onAttemptFault };
  return async (signal) => {
    try {
      await sendWebhooks(sending, signal);
    } catch (error) {
      if (!signal.aborted) onBehind(error);
    }
  };
}

function followingOf(options: WebhooksOptions, health: WebhookHealth): FollowPushesContext {
  const { foundation, objects, due, webUrl, retentionMs, log, onFault } = options;
  const { context, pool } = foundation;
  const complete = (event: RecordedEvent) => withUpdatesInPlace(context, event);
  const past = composePastEntities(foundation, onFault);
  return {
    ...context,
    objects,
    past,
    complete,
    webUrl,
    retentionMs,
    due,
    pushes: createPostgresWaitingPushes(pool),
    pendingBounds: PENDING_BOUNDS,
    marks: health.watched(createPostgresPolicyMarks(pool)),
    notified: createPostgresNotifiedPushes(pool),
    pause,
    inTime: forBucket,
    bucketFailures: createRecentCounts({
      spanMs: BUCKET_BACKGROUND_REST_MS,
      keysMax: BUCKETS_REMEMBERED_MAX,
      monotonicMs: () => context.clock.monotonicMs(),
    }),
    log,
    onFault: (cause) => {
      health.followingFails();
      onFault('webhook-notifications', cause);
    },
  };
}

/** Waits as long as the work behind pushes waits for a bucket of a user. */
async function forBucket<Value>(work: Promise<Value>): Promise<Value | null> {
  const waiting = new AbortController();
  const late = pause(BUCKET_BACKGROUND_WAIT_MS, waiting.signal).then(() => null);
  try {
    return await Promise.race([work, late]);
  } finally {
    waiting.abort();
  }
}

function attemptingOf({ foundation, outgoing, version, metrics, log }: WebhooksOptions): AttemptContext {
  return {
    ...foundation.context,
    outgoing,
    agent: `Strata-Webhook/${version}`,
    onAttempted: metrics.webhookAttempted,
    log,
  };
}

/** Returns a function that reads how far webhooks were notified of an account's pushes; null before the first. */
export function readNotifiedTo(pool: Foundation['pool']): DroppingContext['notifiedTo'] {
  const notified = createPostgresNotifiedPushes(pool);
  return (account) => notified.reachedFor(account);
}
