/**
 * One subscription: a loop that looks for events behind its position and hands them over.
 *
 * Must stay true: the position moves only after its events were dealt with, so none is lost and none comes twice;
 * an outage of PostgreSQL is waited out; a log without the event it stands at ends it (`log-diverged`).
 */
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { Log } from '../../core/ports/log.ts';
import { EventStoreError, type SubscribeOptions, type Subscription } from '../../core/ports/event-store.ts';
import { failureOf } from './failures.ts';
import type { Anchor, Window } from './log-reader.ts';
import type { ReadWindow } from './shared-tail.ts';

/** Hints may be lost with their connection; this is how long an event stays unseen then. */
const POLL_INTERVAL_MS = 500;
const BATCH_EVENTS_MAX = 1_000;

export interface PostgresSubscription extends Subscription {
  /** A hint that the log reaches to a position: no look is taken when this subscription has passed it. */
  pullTo(position: LogPosition): void;
}

export function startSubscription(readWindow: ReadWindow, log: Log, options: SubscribeOptions): PostgresSubscription {
  const categories = options.categories ?? null;
  const alarm = createAlarm();
  let closing = false;
  let unreachable = false;

  let anchor: Anchor = { position: options.after, id: null };

  async function run(): Promise<void> {
    while (!closing) {
      alarm.reset();
      const window = await look(anchor);
      if (window?.diverged) {
        throw new EventStoreError('log-diverged', `The log no longer holds the event at position ${anchor.position}`);
      }
      if (window !== null && window.end.position > anchor.position) {
        await deliver(window);
        anchor = window.end;
      } else if (window !== null && anchor.id === null) {
        anchor = window.end;
      }
      if (window === null || window.reachedEnd) await alarm.wait(POLL_INTERVAL_MS, anchor.position);
    }
  }

  /** Null while PostgreSQL cannot be asked. */
  async function look(anchor: Anchor): Promise<Window | null> {
    try {
      const window = await readWindow(anchor, categories);
      if (unreachable) log.info({ position: String(anchor.position) }, 'A subscription goes on after an outage');
      unreachable = false;
      return window;
    } catch (error) {
      if (failureOf(error) === 'other') throw error;
      if (!unreachable) log.warn({ err: error }, 'A subscription waits for PostgreSQL');
      unreachable = true;
      return null;
    }
  }

  async function deliver({ events, end }: Window): Promise<void> {
    for (let start = 0; start === 0 || start < events.length; start += BATCH_EVENTS_MAX) {
      if (closing) return;
      const batch = events.slice(start, start + BATCH_EVENTS_MAX);
      const isLast = start + BATCH_EVENTS_MAX >= events.length;
      await options.onEvents(batch, isLast ? end.position : (batch.at(-1)?.position ?? end.position));
    }
  }

  // Starts after the caller has its subscription in hand.
  const closed = Promise.resolve().then(run);
  return {
    pull: () => alarm.ring(ANY_POSITION),
    pullTo: alarm.ring,
    close: async () => {
      closing = true;
      alarm.ring(ANY_POSITION);
      // Why it broke, if it did, is said by `closed`.
      await Promise.allSettled([closed]);
    },
    closed,
  };
}

/** Beyond every event: it is not known how far the log reaches. */
const ANY_POSITION = (2n ** 63n) as LogPosition;

interface Alarm {
  reset(): void;
  /** Somebody knows that the log reaches to a position. */
  ring(position: LogPosition): void;
  /** Resolves at the first ring since the last reset for more than the position, or after the span. */
  wait(spanMs: number, position: LogPosition): Promise<void>;
}

function createAlarm(): Alarm {
  let rungFor: LogPosition = LOG_START;
  let wake: (() => void) | null = null;
  let waitsAt: LogPosition = LOG_START;
  return {
    reset: () => {
      rungFor = LOG_START;
    },
    ring: (position) => {
      if (position > rungFor) rungFor = position;
      if (position > waitsAt) wake?.();
    },
    wait: (spanMs, position) =>
      new Promise((resolve) => {
        if (rungFor > position) return resolve();
        const timer = setTimeout(() => wake?.(), spanMs);
        waitsAt = position;
        wake = () => {
          clearTimeout(timer);
          wake = null;
          resolve();
        };
      }),
  };
}
