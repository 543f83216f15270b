/**
 * One subscription: everything behind its position, resumed from there after every break. Up to the end of the log it
 * reads by itself, a window at a time; there it takes what all take (shared-tail.ts), until it falls behind or that
 * breaks.
 *
 * Must stay true: the position moves only after its events were dealt with, so none is lost and none comes twice; it
 * moves over the server's own events too, since the head may be one of them; it has its place at the end before it
 * reads up to that, so nothing is between; an outage is waited out; a log without the event it stands at ends it
 * (`log-diverged`). The client never subscribes again by itself.
 */
import pRetry from 'p-retry';
import type { LogPosition, RecordedEvent } from '../../core/kernel/envelope.ts';
import { EventStoreError, type SubscribeOptions, type Subscription } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { failureOf, NoAnswerError } from './failures.ts';
import type { LogReader, Window } from './log-reader.ts';
import { lastRecordedOf, type Passed, wantedOf } from './passed.ts';
import type { Session, Sessions } from './sessions.ts';
import type { SharedTail } from './shared-tail.ts';

const RETRY_DELAY_MS_MIN = 50;
const RETRY_DELAY_MS_MAX = 2_000;

export interface SubscriptionContext {
  readonly sessions: Sessions;
  readonly reader: LogReader;
  readonly tail: SharedTail;
  readonly log: Log;
  readonly learn: (position: LogPosition) => void;
}

/** Ends the loop; what the subscriber threw need not be an Error, and may look like an outage. */
class EndedByHandlerError extends Error {
  override readonly name = 'EndedByHandlerError';
}

export function startSubscription(context: SubscriptionContext, options: SubscribeOptions): Subscription {
  const { sessions, reader, tail, log, learn } = context;
  const categories = options.categories === undefined ? null : new Set(options.categories);
  const closing = new AbortController();
  let position = options.after;
  /** The last event of Strata's that was dealt with: the log keeps those for ever, unlike the server's own. */
  let anchor: RecordedEvent | null = null;
  /** What `onEvents` threw: `close` would hide it, since p-retry then rejects with the reason to stop. */
  const broken: unknown[] = [];

  async function run(): Promise<void> {
    while (!closing.signal.aborted) {
      try {
        // Returns when it had got somewhere before it broke, so that the delays begin anew.
        await pRetry(follow, {
          retries: Number.POSITIVE_INFINITY,
          minTimeout: RETRY_DELAY_MS_MIN,
          maxTimeout: RETRY_DELAY_MS_MAX,
          randomize: true,
          signal: closing.signal,
          shouldRetry: ({ error }) => failureOf(error) === 'outage',
          onFailedAttempt: ({ error, attemptNumber }) => {
            if (attemptNumber === 1) log.warn({ err: error }, 'A subscription waits for EventStoreDB');
          },
        });
      } catch (error) {
        if (broken.length > 0) throw broken[0];
        if (!closing.signal.aborted) throw error;
      }
    }
  }

  async function follow(): Promise<void> {
    const started = position;
    try {
      const session = await sessions.open();
      if ((await checkPlace(session)) > position) await readUpTo(session, null);
      while (!closing.signal.aborted) {
        await takeAtTail(session);
        await readUpTo(session, null);
      }
    } catch (error) {
      if (failureOf(error) !== 'outage' || position === started) throw error;
      log.warn({ err: error, position: String(position) }, 'A subscription begins anew where it was');
    }
  }

  /** The head; throws when the log is not the one that was read. */
  async function checkPlace(session: Session): Promise<LogPosition> {
    const head = await reader.head(session);
    const beyond = head < position;
    if (!beyond && (anchor === null || (await isThere(session, anchor)))) return head;
    const lost = beyond ? position : (anchor?.position ?? position);
    throw new EventStoreError('log-diverged', `The log no longer holds the event at position ${lost}`);
  }

  async function isThere(session: Session, { stream, revision, id, position: at }: RecordedEvent): Promise<boolean> {
    const [found] = await reader.readStream(session, stream, { direction: 'forwards', from: revision, limit: 1 });
    return found?.id === id && found.position === at;
  }

  /** By itself, to a position or beyond, or to the end that the log has now. */
  async function readUpTo(session: Session, goal: LogPosition | null): Promise<void> {
    if (closing.signal.aborted || (goal !== null && goal <= position)) return;
    let coming = readAhead(session, position);
    while (!closing.signal.aborted) {
      const { passed, reachedEnd } = await coming;
      const reached = passed.at(-1)?.position ?? position;
      const isLast = goal === null ? reachedEnd : goal <= reached;
      if (!isLast && passed.length === 0) {
        throw new NoAnswerError('EventStoreDB does not give what it has sent before');
      }
      if (!isLast) coming = readAhead(session, reached);
      await deliver(passed);
      if (isLast) return;
    }
  }

  /** A window that is read while another is dealt with: its failure is told in its turn, if that comes. */
  function readAhead(session: Session, after: LogPosition): Promise<Window> {
    const window = reader.readWindow(session, after, closing.signal);
    window.catch(() => undefined);
    return window;
  }

  /** With all who stand at the end of the log, until this one falls behind. */
  async function takeAtTail(session: Session): Promise<void> {
    const place = tail.enter(session, position);
    closing.signal.addEventListener('abort', place.leave);
    try {
      await readUpTo(session, place.from);
      while (!closing.signal.aborted) {
        const passed = place.take(position);
        if (passed === null) return;
        if (passed.length === 0) await place.arrived();
        else await deliver(passed);
      }
    } finally {
      closing.signal.removeEventListener('abort', place.leave);
      place.leave();
    }
  }

  async function deliver(passed: readonly Passed[]): Promise<void> {
    const last = passed.at(-1);
    if (last === undefined || closing.signal.aborted) return;
    try {
      await options.onEvents(wantedOf(passed, categories), last.position);
    } catch (cause) {
      broken.push(cause);
      throw new EndedByHandlerError();
    }
    position = last.position;
    anchor = lastRecordedOf(passed) ?? anchor;
    learn(position);
  }

  // Starts after the caller has its subscription in hand.
  const closed = Promise.resolve().then(run);
  return {
    pull: tail.pull,
    close: async () => {
      closing.abort();
      // Why it broke, if it did, is said by `closed`.
      await Promise.allSettled([closed]);
    },
    closed,
  };
}
