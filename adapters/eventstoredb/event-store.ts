/**
 * The event log on EventStoreDB (docs/event-log.md).
 *
 * Invariants: it keeps the contract of core/ports/event-store.ts, except where EventStoreDB makes that impossible:
 * guards are read before the append (append-attempt.ts), an event id that another stream already holds is not noticed,
 * and a deposed leader may answer reads until it steps down. A process opens one log at a time: the library keeps the
 * pending appends of all its clients in one map, so two clients break each other.
 */
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { shareRead } from '../../core/kernel/shared-read.ts';
import { type EventStore, EventStoreError, type Subscription } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import type { LogPruning } from '../../core/ports/log-pruning.ts';
import { Appender } from './appending.ts';
import { parseEventStoreDbAddress } from './connection.ts';
import { createEventStoreDbLogPruning } from './log-pruning.ts';
import { LogReader } from './log-reader.ts';
import { createOutages } from './outages.ts';
import { READING, retryRepeatable } from './retry.ts';
import { createSessions, type Session } from './sessions.ts';
import { createSharedTail } from './shared-tail.ts';
import { startSubscription } from './subscription.ts';

/** A frozen leader costs these three, in this order, when the cluster has elected another leader. */
const QUIET_MS = 1_000;
const ASK_SPAN_MS = 1_500;
const CONNECT_SPAN_MS = 1_000;
const APPEND_ATTEMPT_SPAN_MS = 5_000;
const APPEND_RETRY_SPAN_MS = 20_000;
const READ_SILENCE_MS = 5_000;
const READ_RETRY_SPAN_MS = 5_000;
const SUBSCRIPTION_QUIET_MS = 10_000;

export interface EventStoreDbOptions {
  /** An `esdb://` address, in the form that connection.ts parses. */
  readonly address: string;
  /** The folder that file names in the address are relative to. */
  readonly folder: string;
  readonly log: Log;
  /** How long the server may take to answer a new client; longer after each client that got no answer. */
  readonly connectSpanMs?: number;
  /** How long an attempt to append may take before its outcome counts as unknown and it is retried. */
  readonly appendAttemptSpanMs?: number;
  /** How long an append is retried before it fails. */
  readonly appendRetrySpanMs?: number;
  /** How long a read may bring nothing before it fails. */
  readonly readSilenceMs?: number;
  /** How long a failed read is retried. */
  readonly readRetrySpanMs?: number;
  /** How long the stream that subscriptions share may bring nothing before the head is read. */
  readonly subscriptionQuietMs?: number;
  /** The clock that measures the age of guards; performance.now by default. */
  readonly nowMs?: () => number;
}

export interface EventStoreDbEventStore extends EventStore {
  readonly pruning: LogPruning;
  /** Ends all subscriptions, waits for the result of every pending append, then gives up the client. Idempotent. */
  close(): Promise<void>;
}

/** Whether this process has a log open. */
let isOpen = false;

/**
 * Opens the log; it connects on first use. Throws `UnusableAddressError` for an address that cannot be honoured in
 * full, and TypeError when this process already has a log open.
 */
export function createEventStoreDbEventStore(options: EventStoreDbOptions): EventStoreDbEventStore {
  const connection = parseEventStoreDbAddress(options.address, options.folder);
  if (isOpen) throw new TypeError('This process has an EventStoreDB log open: its client can exist only once');
  isOpen = true;
  const {
    log,
    readRetrySpanMs = READ_RETRY_SPAN_MS,
    appendAttemptSpanMs: attemptSpanMs = APPEND_ATTEMPT_SPAN_MS,
  } = options;
  const { connectSpanMs = CONNECT_SPAN_MS } = options;
  const outages = createOutages(log);
  const spans = { connectSpanMs, quietMs: QUIET_MS, askSpanMs: ASK_SPAN_MS };
  const sessions = createSessions({ connection, outages, ...spans });
  const reader = new LogReader({ sessions, log, silenceMs: options.readSilenceMs ?? READ_SILENCE_MS });
  let known = LOG_START;
  const notePosition = (position: LogPosition): void => {
    if (position > known) known = position;
  };
  const appender = new Appender({
    sessions,
    reader,
    notePosition,
    attemptSpanMs,
    retrySpanMs: options.appendRetrySpanMs ?? APPEND_RETRY_SPAN_MS,
    knownPosition: () => known,
    nowMs: options.nowMs ?? (() => performance.now()),
  });
  const subscriptions = new Set<Subscription>();
  let closed: Promise<void> | null = null;

  const read = <T>(work: (session: Session) => Promise<T>): Promise<T> =>
    retryRepeatable(readRetrySpanMs, READING, async () => work(await sessions.open()));
  const head = shareRead(async () => {
    const position = await read((session) => reader.head(session));
    notePosition(position);
    return position;
  });

  const tail = createSharedTail({ head, log, quietMs: options.subscriptionQuietMs ?? SUBSCRIPTION_QUIET_MS });

  async function close(): Promise<void> {
    // An error that ended a subscription is reported to its owner through `closed`.
    await Promise.allSettled([...subscriptions].map((subscription) => subscription.close()));
    await appender.close();
    sessions.close();
    isOpen = false;
  }

  return {
    append: (request) => appender.append(request),
    readStream: (stream, range) => read((session) => reader.readStream(session, stream, range)),
    readAll: (after, limit) => read((session) => reader.readAll(session, after, limit)),
    head,
    pruning: createEventStoreDbLogPruning({ sessions, reader, attemptSpanMs, retrySpanMs: readRetrySpanMs }),
    subscribe: (subscribeOptions) => {
      if (closed !== null) throw new EventStoreError('log-unavailable', 'The event log was closed');
      const subscription = startSubscription({ sessions, reader, tail, outages, notePosition }, subscribeOptions);
      subscriptions.add(subscription);
      const remove = (): boolean => subscriptions.delete(subscription);
      subscription.closed.then(remove, remove);
      return subscription;
    },
    close: () => {
      closed ??= close();
      return closed;
    },
  };
}
