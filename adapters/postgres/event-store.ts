/**
 * The event log on PostgreSQL (design/event-log.md).
 *
 * Must stay true: the contract of core/ports/event-store.ts. Appends are decided by one function in the database
 * (migrations/001-event-log.ts), so any number of nodes may write.
 */
import type { EventStore, Subscription } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { createAppendQueue } from './append-queue.ts';
import { type Listener, listen } from './listener.ts';
import { createLogReader } from './log-reader.ts';
import { createPool } from './pool.ts';
import { retryRepeatable } from './retry.ts';
import { shareRead } from './shared-read.ts';
import { startSubscription } from './subscription.ts';

const APPEND_RETRY_SPAN_MS = 20_000;
const READ_RETRY_SPAN_MS = 5_000;
const CONNECTIONS_MAX = 8;

export interface PostgresEventStoreOptions {
  /** A migrated database (migrate.ts). */
  readonly connectionString: string;
  readonly log: Log;
  /** How long an append is retried while PostgreSQL is away, before its caller is told. */
  readonly appendRetrySpanMs?: number;
  readonly readRetrySpanMs?: number;
}

export interface PostgresEventStore extends EventStore {
  /** Ends subscriptions, answers the appends that wait, and closes every connection. Again is no error. */
  close(): Promise<void>;
}

/**
 * Opens the log. It has connections of its own, 8 and one that listens, so that slow queries elsewhere never delay
 * an append; it connects when first used and again after an outage.
 */
export function createPostgresEventStore(options: PostgresEventStoreOptions): PostgresEventStore {
  const { log, appendRetrySpanMs = APPEND_RETRY_SPAN_MS, readRetrySpanMs = READ_RETRY_SPAN_MS } = options;
  const poolOptions = { connectionString: options.connectionString, log, connectionsMax: CONNECTIONS_MAX };
  const pool = createPool(poolOptions);
  const reader = createLogReader(pool);
  const subscriptions = new Set<Subscription>();
  const pullAll = () => {
    for (const subscription of subscriptions) subscription.pull();
  };
  const queue = createAppendQueue({ pool, log, retrySpanMs: appendRetrySpanMs, onAppended: pullAll });
  let listener: Listener | null = null;
  let closed: Promise<void> | null = null;

  async function close(): Promise<void> {
    // What ended a subscription before is its owner's to see, through `closed`.
    await Promise.allSettled([...subscriptions].map((subscription) => subscription.close()));
    await listener?.close();
    await queue.close();
    await pool.end();
  }

  return {
    append: queue.append,
    readStream: (stream, range) => retryRepeatable(readRetrySpanMs, () => reader.readStream(stream, range)),
    readAll: (after, limit) => retryRepeatable(readRetrySpanMs, () => reader.readAll(after, limit)),
    head: shareRead(() => retryRepeatable(readRetrySpanMs, reader.head)),
    subscribe: (wanted) => {
      listener ??= listen(poolOptions, pullAll);
      const subscription = startSubscription(reader, log, wanted);
      subscriptions.add(subscription);
      const forget = () => subscriptions.delete(subscription);
      subscription.closed.then(forget, forget);
      return subscription;
    },
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
