/**
 * One subscription: everything behind its position, resumed from there after every break.
 *
 * Must stay true: the position moves only after its events were dealt with, so none is lost and none comes twice; it
 * moves over the server's own events too, since the head may be one of them; an outage is waited out; a log without
 * the event it stands at ends it (`log-diverged`). The client never subscribes again by itself, and a subscription
 * that the server has forgotten looks like a quiet one: so the head is looked at whenever nothing has come for a time.
 */
import { START } from '@eventstore/db-client';
import pRetry from 'p-retry';
import { categoryOf, LOG_START, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import { EventStoreError, type SubscribeOptions, type Subscription } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { isSystemStream, positionOf, type ReceivedEvent, toEsdbPosition, toRecorded } from './event-form.ts';
import { failureOf, NoAnswerError } from './failures.ts';
import { createInbox, type Inbox } from './inbox.ts';
import { type LogReader, passOver } from './log-reader.ts';
import type { Session, Sessions } from './sessions.ts';

const RETRY_DELAY_MS_MIN = 50;
const RETRY_DELAY_MS_MAX = 2_000;

export interface SubscriptionContext {
  readonly sessions: Sessions;
  readonly reader: LogReader;
  /** The head, shared with everyone who asks at the moment. */
  readonly head: () => Promise<LogPosition>;
  readonly log: Log;
  /** How long nothing may come before the head is looked at; after a hint a tenth of it. */
  readonly quietMs: number;
  readonly learn: (position: LogPosition) => void;
}

/** Ends the loop; what the subscriber threw need not be an Error, and may look like an outage. */
class EndedByHandlerError extends Error {
  override readonly name = 'EndedByHandlerError';
}

export function startSubscription(context: SubscriptionContext, options: SubscribeOptions): Subscription {
  const { sessions, reader, head, log, quietMs, learn } = context;
  const categories = options.categories === undefined ? null : new Set(options.categories);
  const closing = new AbortController();
  let position = options.after;
  /** The last event of Strata's that was dealt with: the log keeps those for ever, unlike the server's own. */
  let anchor: RecordedEvent | null = null;
  let hinted = false;
  /** What `onEvents` threw: `close` would hide it, since p-retry then rejects with the reason to stop. */
  const broken: unknown[] = [];
  let wake = (): void => undefined;

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
      await checkPlace(session);
      await receive(session);
    } catch (error) {
      if (failureOf(error) !== 'outage' || position === started) throw error;
      log.warn({ err: error, position: String(position) }, 'A subscription begins anew where it was');
    }
  }

  async function checkPlace(session: Session): Promise<void> {
    const beyond = (await reader.head(session)) < position;
    if (!beyond && (anchor === null || (await isThere(session, anchor)))) return;
    const lost = beyond ? position : (anchor?.position ?? position);
    throw new EventStoreError('log-diverged', `The log no longer holds the event at position ${lost}`);
  }

  async function isThere(session: Session, { stream, revision, id, position: at }: RecordedEvent): Promise<boolean> {
    const [found] = await reader.readStream(session, stream, { direction: 'forwards', from: revision, limit: 1 });
    return found?.id === id && found.position === at;
  }

  async function receive(session: Session): Promise<void> {
    const fromPosition = position === LOG_START ? START : toEsdbPosition(position);
    const stream = session.client.subscribeToAll({ fromPosition, requiresLeader: true });
    // One that comes after the iteration has ended would be thrown where nobody can catch it.
    stream.on('error', () => undefined);
    const inbox = createInbox();
    const cut = (): void => inbox.fail(new NoAnswerError('The connection to EventStoreDB was given up'));
    session.ended.addEventListener('abort', cut);
    if (session.ended.aborted) cut();
    const reading = pour(stream, inbox);
    try {
      await deliver(inbox);
    } finally {
      session.ended.removeEventListener('abort', cut);
      inbox.close();
      stream.unsubscribe().catch(() => undefined);
      stream.destroy();
      await reading;
    }
  }

  /** Takes what the server sends, as fast as it is dealt with. */
  async function pour(stream: AsyncIterable<{ readonly event?: ReceivedEvent }>, inbox: Inbox): Promise<void> {
    try {
      for await (const { event } of stream) {
        if (event === undefined) continue;
        const at = positionOf(event);
        // Nothing comes twice, wherever the server begins.
        if (at <= position) continue;
        inbox.put(at, wantedOf(event));
        await inbox.room();
      }
      inbox.fail(new NoAnswerError('EventStoreDB ended a subscription'));
    } catch (error) {
      inbox.fail(error);
    }
  }

  function wantedOf(event: ReceivedEvent): { readonly event: RecordedEvent; readonly wanted: boolean } | null {
    if (isSystemStream(event.streamId)) return null;
    const recorded = toRecorded(event);
    if (recorded === null) {
      passOver(log, event);
      return null;
    }
    return { event: recorded, wanted: categories === null || categories.has(categoryOf(recorded.stream)) };
  }

  async function deliver(inbox: Inbox): Promise<void> {
    while (!closing.signal.aborted) {
      const batch = inbox.take();
      if (batch === null) {
        await arrival(inbox);
        continue;
      }
      try {
        await options.onEvents(batch.events, batch.position);
      } catch (cause) {
        broken.push(cause);
        throw new EndedByHandlerError();
      }
      position = batch.position;
      anchor = batch.last ?? anchor;
      learn(position);
    }
  }

  /** Waits for something to come; throws when the server has more and does not send it. */
  async function arrival(inbox: Inbox): Promise<void> {
    if (await waitFor(inbox, hinted ? quietMs / 10 : quietMs)) return;
    hinted = false;
    if ((await currentHead()) <= position) return;
    // It may be on its way.
    if (await waitFor(inbox, quietMs / 10)) return;
    throw new NoAnswerError('EventStoreDB has events behind a subscription and does not send them');
  }

  async function currentHead(): Promise<LogPosition> {
    try {
      return await head();
    } catch (cause) {
      throw new NoAnswerError('The head cannot be read', { cause });
    }
  }

  /** True when something came, or the wait is over for another reason; false after the span. */
  function waitFor(inbox: Inbox, spanMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const finish = (came: boolean) => () => {
        clearTimeout(timer);
        wake = () => undefined;
        resolve(came);
      };
      const timer = setTimeout(finish(false), spanMs);
      wake = finish(true);
      inbox.arrived().then(finish(true), finish(true));
    });
  }

  // Starts after the caller has its subscription in hand.
  const closed = Promise.resolve().then(run);
  return {
    pull: () => {
      if (hinted) return;
      hinted = true;
      wake();
    },
    close: async () => {
      closing.abort();
      wake();
      // Why it broke, if it did, is said by `closed`.
      await Promise.allSettled([closed]);
    },
    closed,
  };
}
