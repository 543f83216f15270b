/**
 * The event log on EventStoreDB (design/event-log.md).
 *
 * Must stay true: the contract of core/ports/event-store.ts, except where EventStoreDB has no way: guards are read
 * before the append (appending.ts), an id that another stream already holds is not noticed, and a deposed leader may
 * answer reads until it steps down. One log a process: EventStoreDB's client keeps the appends it waits for in one
 * place for all clients, so that two of them break each other.
 */
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { shareRead } from '../../core/kernel/shared-read.ts';
import { type EventStore, EventStoreError, type Subscription } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { createAppender } from './appending.ts';
import { parseEventStoreDbAddress } from './connection.ts';
import { createLogReader } from './log-reader.ts';
import { retryRepeatable } from './retry.ts';
import { createSessions, type Session } from './sessions.ts';
import { createSharedTail } from './shared-tail.ts';
import { startSubscription } from './subscription.ts';

const CONNECT_SPAN_MS = 5_000;
const APPEND_ATTEMPT_SPAN_MS = 5_000;
const APPEND_RETRY_SPAN_MS = 20_000;
const READ_SILENCE_MS = 5_000;
const READ_RETRY_SPAN_MS = 5_000;
const SUBSCRIPTION_QUIET_MS = 10_000;

export interface EventStoreDbOptions {
  /** `esdb://…` (connection.ts). */
  readonly address: string;
  /** Where files that the address names are looked for. */
  readonly folder: string;
  readonly log: Log;
  /** How long a new client may take to be answered. */
  readonly connectSpanMs?: number;
  /** How long an attempt to append may take before its outcome counts as unknown and it is repeated. */
  readonly appendAttemptSpanMs?: number;
  /** How long an append is repeated before its caller is told. */
  readonly appendRetrySpanMs?: number;
  /** How long a read may bring nothing. */
  readonly readSilenceMs?: number;
  readonly readRetrySpanMs?: number;
  /** How long the stream of subscriptions may bring nothing before the head is looked at. */
  readonly subscriptionQuietMs?: number;
  /** For the age of guards; performance.now by default. */
  readonly nowMs?: () => number;
}

export interface EventStoreDbEventStore extends EventStore {
  /** Ends subscriptions, answers the appends under way and gives the client up. Again is no error. */
  close(): Promise<void>;
}

/** Whether this process has one open. */
let isOpen = false;

/**
 * Opens the log; it connects when first used. Throws `UnusableAddressError` for an address that cannot be used as
 * asked, and TypeError when this process has one open already.
 */
export function createEventStoreDbEventStore(options: EventStoreDbOptions): EventStoreDbEventStore {
  const connection = parseEventStoreDbAddress(options.address, options.folder);
  if (isOpen) throw new TypeError('This process has an EventStoreDB log open: its client can be there only once');
  isOpen = true;
  const { log, readRetrySpanMs = READ_RETRY_SPAN_MS } = options;
  const sessions = createSessions({ connection, log, connectSpanMs: options.connectSpanMs ?? CONNECT_SPAN_MS });
  const reader = createLogReader({ sessions, log, silenceMs: options.readSilenceMs ?? READ_SILENCE_MS });
  let known = LOG_START;
  const learn = (position: LogPosition): void => {
    if (position > known) known = position;
  };
  const appender = createAppender({
    ...{ sessions, reader, learn },
    attemptSpanMs: options.appendAttemptSpanMs ?? APPEND_ATTEMPT_SPAN_MS,
    retrySpanMs: options.appendRetrySpanMs ?? APPEND_RETRY_SPAN_MS,
    known: () => known,
    nowMs: options.nowMs ?? (() => performance.now()),
  });
  const subscriptions = new Set<Subscription>();
  let closed: Promise<void> | null = null;

  const read = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    retryRepeatable(readRetrySpanMs, async () => work(await sessions.open()));
  const head = shareRead(async () => {
    const position = await read(reader.head);
    learn(position);
    return position;
  });

  const quietMs = options.subscriptionQuietMs ?? SUBSCRIPTION_QUIET_MS;
  const tail = createSharedTail({ head, log, quietMs });

  async function close(): Promise<void> {
    // What ended a subscription before is its owner's to see, through `closed`.
    await Promise.allSettled([...subscriptions].map((subscription) => subscription.close()));
    await appender.close();
    sessions.close();
    isOpen = false;
  }

  return {
    append: appender.append,
    readStream: (stream, range) => read((session) => reader.readStream(session, stream, range)),
    readAll: (after, limit) => read((session) => reader.readAll(session, after, limit)),
    head,
    subscribe: (wanted) => {
      if (closed !== null) throw new EventStoreError('log-unavailable', 'The event log was closed');
      const subscription = startSubscription({ sessions, reader, tail, log, learn }, wanted);
      subscriptions.add(subscription);
      const forget = (): boolean => subscriptions.delete(subscription);
      subscription.closed.then(forget, forget);
      return subscription;
    },
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
