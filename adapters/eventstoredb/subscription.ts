/**
 * One subscription: delivers everything behind its position, and resumes from there after every break. Up to the end
 * of the log it reads for itself, a window at a time. At the end it reads the stream that all subscriptions share
 * (shared-tail.ts), until it falls behind or the stream breaks.
 *
 * Invariants:
 * - the position moves only after the subscriber has handled the events before it, so none is lost or delivered twice;
 * - the position moves over the server's own events too, since the head may be one of them;
 * - the subscription takes its place in the shared stream before it reads up to that place, so there is no gap;
 * - it retries as long as an outage lasts, and ends with `log-diverged` when the log no longer holds its last event;
 * - only this loop subscribes again after a break: EventStoreDB's client never does.
 */
import pRetry from 'p-retry';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { EventStoreError, type SubscribeOptions, type Subscription } from '../../core/ports/event-store.ts';
import type { RecordPlace } from '../../core/ports/read-mark.ts';
import { failureOf, NoAnswerError } from './failures.ts';
import { eventsOfCategories, type LogEntry, lastRecordIn } from './log-entries.ts';
import type { LogReader, Window } from './log-reader.ts';
import type { Outages } from './outages.ts';
import { READING, unavailable } from './retry.ts';
import type { Session, Sessions } from './sessions.ts';
import type { SharedTail } from './shared-tail.ts';

/** The pauses between attempts. Internal: it is the pace of attempts. */
const RETRY_DELAY_MS_MIN = 50;
const RETRY_DELAY_MS_MAX = 2_000;

export interface SubscriptionContext {
  readonly sessions: Sessions;
  readonly reader: LogReader;
  readonly tail: SharedTail;
  readonly outages: Outages;
  /** Called with each position that was delivered. */
  readonly notePosition: (position: LogPosition) => void;
}

/** Ends the loop. It replaces what the subscriber threw, which need not be an Error and may look like an outage. */
class EndedByHandlerError extends Error {
  override readonly name = 'EndedByHandlerError';
}

export function startSubscription(context: SubscriptionContext, options: SubscribeOptions): Subscription {
  const closing = new AbortController();
  const loop = new SubscriptionLoop(context, options, closing.signal);
  // The loop starts only after the caller has the subscription.
  const closed = Promise.resolve().then(() => loop.run());
  return {
    pull: context.tail.pull,
    close: async () => {
      closing.abort();
      // An error that ended the loop is reported by `closed` only.
      await Promise.allSettled([closed]);
    },
    closed,
  };
}

class SubscriptionLoop {
  readonly #context: SubscriptionContext;
  readonly #onEvents: SubscribeOptions['onEvents'];
  /** The categories to deliver; null for all. */
  readonly #categories: ReadonlySet<string> | null;
  readonly #closing: AbortSignal;
  #position: LogPosition;
  /** The last record event that was delivered: the log never prunes those, unlike the server's own events. */
  #anchor: RecordPlace | null = null;
  /** What `onEvents` threw, if it did; after `close` p-retry rejects with the abort reason, which would hide it. */
  readonly #handlerErrors: unknown[] = [];

  constructor(context: SubscriptionContext, options: SubscribeOptions, closing: AbortSignal) {
    this.#context = context;
    this.#onEvents = options.onEvents;
    this.#categories = options.categories === undefined ? null : new Set(options.categories);
    this.#closing = closing;
    this.#position = options.after;
  }

  /**
   * Resolves after `close`; rejects with what `onEvents` threw, or as the port says: a refusal is `log-unavailable`.
   */
  async run(): Promise<void> {
    while (!this.#closing.aborted) {
      try {
        // `follow` returns when it made progress before it broke, so that the delays start from the shortest again.
        await pRetry(() => this.#follow(), {
          retries: Number.POSITIVE_INFINITY,
          minTimeout: RETRY_DELAY_MS_MIN,
          maxTimeout: RETRY_DELAY_MS_MAX,
          randomize: true,
          signal: this.#closing,
          shouldRetry: ({ error }) => failureOf(error) === 'outage',
        });
      } catch (error) {
        if (this.#handlerErrors.length > 0) throw this.#handlerErrors[0];
        if (!this.#closing.aborted) throw unavailable(error, READING);
      }
    }
  }

  async #follow(): Promise<void> {
    const started = this.#position;
    let session: Session | null = null;
    try {
      session = await this.#context.sessions.open();
      if ((await this.#checkPlace(session)) > this.#position) await this.#readUpTo(session, null);
      while (!this.#closing.aborted) {
        await this.#readTail(session);
        await this.#readUpTo(session, null);
      }
    } catch (error) {
      if (failureOf(error) !== 'outage') throw error;
      this.#tell(session, error);
      if (this.#position === started) throw error;
    }
  }

  #tell(session: Session | null, error: unknown): void {
    if (this.#closing.aborted) return;
    const what = session === null ? 'Subscriptions wait for EventStoreDB' : 'Subscriptions start again where they were';
    this.#context.outages.broke(session, { err: error }, what);
  }

  /** Resolves with the head. Throws `log-diverged` when the log does not hold the events that were delivered. */
  async #checkPlace(session: Session): Promise<LogPosition> {
    const head = await this.#context.reader.head(session);
    const position = this.#position;
    const anchor = this.#anchor;
    const beyond = head < position;
    if (!beyond && (anchor === null || (await this.#isStored(session, anchor)))) return head;
    const lost = beyond ? position : (anchor?.position ?? position);
    throw new EventStoreError('log-diverged', `The log no longer holds the event at position ${lost}`);
  }

  async #isStored(session: Session, { stream, revision, eventId, position }: RecordPlace): Promise<boolean> {
    const range = { direction: 'forwards', from: revision, limit: 1 } as const;
    const [found] = await this.#context.reader.readStream(session, stream, range);
    return found?.id === eventId && found.position === position;
  }

  /** Reads and delivers windows until the position is at or beyond the goal; without one, to the end of the log. */
  async #readUpTo(session: Session, goal: LogPosition | null): Promise<void> {
    if (this.#closing.aborted || (goal !== null && goal <= this.#position)) return;
    let next = this.#readAhead(session, this.#position);
    while (!this.#closing.aborted) {
      const { entries, reachedEnd } = await next;
      const reached = entries.at(-1)?.position ?? this.#position;
      const isLast = goal === null ? reachedEnd : goal <= reached;
      if (!isLast && entries.length === 0) {
        throw new NoAnswerError('EventStoreDB does not give what it has sent before');
      }
      if (!isLast) next = this.#readAhead(session, reached);
      await this.#deliver(entries);
      if (isLast) return;
    }
  }

  /** Reads a window while the one before is delivered. Its failure is thrown only where the window is awaited. */
  #readAhead(session: Session, after: LogPosition): Promise<Window> {
    const window = this.#context.reader.readWindow(session, after, this.#closing);
    window.catch(() => undefined);
    return window;
  }

  /** Delivers from the shared stream at the end of the log until this subscription falls behind. */
  async #readTail(session: Session): Promise<void> {
    const reader = this.#context.tail.join(session, this.#position);
    this.#closing.addEventListener('abort', reader.leave);
    try {
      await this.#readUpTo(session, reader.from);
      while (!this.#closing.aborted) {
        const entries = reader.take(this.#position);
        if (entries === null) return;
        if (entries.length === 0) await reader.changed();
        else await this.#deliver(entries);
      }
    } finally {
      this.#closing.removeEventListener('abort', reader.leave);
      reader.leave();
    }
  }

  async #deliver(entries: readonly LogEntry[]): Promise<void> {
    const last = entries.at(-1);
    if (last === undefined || this.#closing.aborted) return;
    const lastRecord = lastRecordIn(entries);
    try {
      await this.#onEvents(eventsOfCategories(entries, this.#categories), last.position, lastRecord);
    } catch (cause) {
      this.#handlerErrors.push(cause);
      throw new EndedByHandlerError();
    }
    this.#position = last.position;
    this.#anchor = lastRecord ?? this.#anchor;
    this.#context.notePosition(this.#position);
  }
}
