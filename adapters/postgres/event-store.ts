/**
 * The event log on PostgreSQL (docs/event-log.md).
 *
 * Invariants: the contract of core/ports/event-store.ts. One function in the database decides every append
 * (append_events in migrations/008-appends.ts), so any number of nodes may write.
 */
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { shareRead } from '../../core/kernel/shared-read.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import type { Lease } from '../../core/ports/read-leases.ts';
import { appendBatches } from './append-in-order.ts';
import { createAppendQueue } from './append-queue.ts';
import { createClockWatch } from './clock-difference.ts';
import { type Listener, listen } from './listener.ts';
import { createLogReader, readHead } from './log-reader.ts';
import { createOwnTail } from './own-tail.ts';
import { createPool } from './pool.ts';
import { retryRepeatable } from './retry.ts';
import { shareTail } from './shared-tail.ts';
import { createSubscriptions } from './subscriptions.ts';
import { createTicks } from './ticks.ts';

const APPEND_RETRY_SPAN_MS = 20_000;
const READ_RETRY_SPAN_MS = 5_000;
/**
 * Enough, since at most one batch of appends and one read of the head run at a time. Internal: further statements wait.
 */
const APPEND_CONNECTIONS_MAX = 2;
/** Connections for reads. Internal: further statements wait. */
const READ_CONNECTIONS_MAX = 6;
/** An event whose notification was lost is seen this much later. */
const POLL_INTERVAL_MS = 500;
/** The longest time that a subscription lingers, over appends of this process. */
const LINGER_MS = 8;

export interface PostgresEventStoreOptions {
  /** The address of a migrated database (migrate.ts). */
  readonly connectionString: string;
  readonly log: Log;
  /**
   * Of the caller, which ends them after the log. Appends and reads of the head have one to themselves if it gives two.
   * Without pools the log has its own: 2 connections for appends and 6 for reads.
   */
  readonly pools?: { readonly appends: pg.Pool; readonly reads: pg.Pool };
  /** Whether subscriptions listen on their own connection, as they do by default; else they read twice a second. */
  readonly listens?: boolean;
  /** How long an append is retried while PostgreSQL is unreachable, before it throws. */
  readonly appendRetrySpanMs?: number;
  readonly readRetrySpanMs?: number;
  readonly lingerMs?: number;
  /** This node's clock, in milliseconds since 1970. */
  readonly nowMs?: () => number;
  /** How this process takes part in read leases. Without it each append waits until all of them have ended. */
  readonly leases?: {
    /** Its name in their table. */
    readonly node: string;
    /** Called before appends up to the position are answered, with the leases at their commit. */
    readonly onAppended: (position: LogPosition, leases: readonly Lease[]) => void;
  };
}

export interface PostgresEventStore extends EventStore {
  /** Ends the subscriptions, waits until every queued append is answered, and closes all connections. Idempotent. */
  close(): Promise<void>;
  /** Whether this node's clock differs from PostgreSQL's, as the last append or read of the head showed. */
  clockDiffers(): boolean;
  /** By how many seconds PostgreSQL's clock is ahead of this node's (`ClockWatch`). */
  clockSecondsAhead(): number;
}

/**
 * Opens the log. Beside its two pools it listens on a connection of its own. One pool serves only appends and reads of
 * the head, so slow reads of the log or of other tables never delay those. Connects at first use.
 */
export function createPostgresEventStore(options: PostgresEventStoreOptions): PostgresEventStore {
  const { log, appendRetrySpanMs = APPEND_RETRY_SPAN_MS, readRetrySpanMs = READ_RETRY_SPAN_MS } = options;
  const { lingerMs = LINGER_MS } = options;
  const connection = { connectionString: options.connectionString, log };
  const { appends, reads } = options.pools ?? {
    appends: createPool({ ...connection, connectionsMax: APPEND_CONNECTIONS_MAX }),
    reads: createPool({ ...connection, connectionsMax: READ_CONNECTIONS_MAX }),
  };
  const watch = createClockWatch({ nowMs: options.nowMs ?? Date.now, log });
  const reader = createLogReader(reads);
  const own = createOwnTail();
  const subscriptions = createSubscriptions({
    readWindow: shareTail(reader.readWindow, own),
    polls: createTicks(POLL_INTERVAL_MS),
    // All that linger go on in the same turn of the event loop, so that they share their reads and statements.
    lingering: createTicks(lingerMs),
    log,
    isAppending: () => queue.isSending(),
  });
  const appending = {
    pool: appends,
    retrySpanMs: appendRetrySpanMs,
    appender: options.leases?.node ?? null,
    onAppended: (position: LogPosition, held: readonly Lease[]) => {
      subscriptions.appended(position);
      options.leases?.onAppended(position, held);
    },
    onAnswered: subscriptions.hear,
  };
  const queue = createAppendQueue({ ...appending, log, watch, own });
  let listener: Listener | null = null;
  let closed: Promise<void> | null = null;

  const listenForEvents = (): Listener =>
    listen(connection, {
      channel: 'strata_events',
      onNotification: subscriptions.notified,
      onConnected: subscriptions.look,
      whenLost: 'Cannot listen for new events: reading the log every half second only',
    });

  async function close(): Promise<void> {
    await subscriptions.close();
    await listener?.close();
    await queue.close();
    if (options.pools === undefined) await Promise.all([appends.end(), reads.end()]);
  }

  return {
    append: (request) => queue.append(request),
    appendInOrder: (requests) => appendBatches(appending, requests),
    readStream: (stream, range) => retryRepeatable(readRetrySpanMs, () => reader.readStream(stream, range)),
    readAll: (after, limit) => retryRepeatable(readRetrySpanMs, () => reader.readAll(after, limit)),
    readPositions: (positions) => retryRepeatable(readRetrySpanMs, () => reader.readPositions(positions)),
    head: shareRead(() => retryRepeatable(readRetrySpanMs, () => readHead(appends, watch))),
    subscribe: (subscribeOptions) => {
      if (options.listens !== false) listener ??= listenForEvents();
      return subscriptions.start(subscribeOptions);
    },
    clockDiffers: () => watch.differs(),
    clockSecondsAhead: () => watch.secondsAhead(),
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
