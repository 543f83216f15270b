/**
 * The event log on PostgreSQL (design/event-log.md).
 *
 * Must stay true: the contract of core/ports/event-store.ts. Appends are decided by one function in the database
 * (migrations/001-event-log.ts), so any number of nodes may write.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { appendBatches } from './append-in-order.ts';
import { createAppendQueue } from './append-queue.ts';
import { type Listener, listen } from './listener.ts';
import { createLogReader, readHead } from './log-reader.ts';
import { createPool } from './pool.ts';
import { retryRepeatable } from './retry.ts';
import { shareRead } from '../../core/kernel/shared-read.ts';
import { shareTail } from './shared-tail.ts';
import { type PostgresSubscription, startSubscription } from './subscription.ts';

const APPEND_RETRY_SPAN_MS = 20_000;
const READ_RETRY_SPAN_MS = 5_000;
/** An append and a look at the head are under way at most. */
const DECIDING_CONNECTIONS_MAX = 2;
const READING_CONNECTIONS_MAX = 6;

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
 * Opens the log. It has connections of its own, at most 8 and one that listens, and keeps two for appends and the
 * head, so that slow reads, here or elsewhere, never delay those. It connects when first used.
 */
export function createPostgresEventStore(options: PostgresEventStoreOptions): PostgresEventStore {
  const { log, appendRetrySpanMs = APPEND_RETRY_SPAN_MS, readRetrySpanMs = READ_RETRY_SPAN_MS } = options;
  const connection = { connectionString: options.connectionString, log };
  const deciding = createPool({ ...connection, connectionsMax: DECIDING_CONNECTIONS_MAX });
  const reading = createPool({ ...connection, connectionsMax: READING_CONNECTIONS_MAX });
  const reader = createLogReader(reading);
  const readWindow = shareTail(reader.readWindow);
  const subscriptions = new Set<PostgresSubscription>();
  const pullAll = (head: LogPosition | null) => {
    for (const subscription of subscriptions) {
      if (head === null) subscription.pull();
      else subscription.pullTo(head);
    }
  };
  const queue = createAppendQueue({ pool: deciding, log, retrySpanMs: appendRetrySpanMs, onAppended: pullAll });
  let listener: Listener | null = null;
  let closed: Promise<void> | null = null;

  async function close(): Promise<void> {
    // What ended a subscription before is its owner's to see, through `closed`.
    await Promise.allSettled([...subscriptions].map((subscription) => subscription.close()));
    await listener?.close();
    await queue.close();
    await Promise.all([deciding.end(), reading.end()]);
  }

  return {
    append: queue.append,
    appendInOrder: (requests) =>
      appendBatches({ pool: deciding, retrySpanMs: appendRetrySpanMs, onAppended: pullAll }, requests),
    readStream: (stream, range) => retryRepeatable(readRetrySpanMs, () => reader.readStream(stream, range)),
    readAll: (after, limit) => retryRepeatable(readRetrySpanMs, () => reader.readAll(after, limit)),
    head: shareRead(() => retryRepeatable(readRetrySpanMs, () => readHead(deciding))),
    subscribe: (wanted) => {
      listener ??= listen(connection, pullAll);
      const subscription = startSubscription(readWindow, log, wanted);
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
