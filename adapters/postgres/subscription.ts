/**
 * One subscription: a loop that reads the events after its position and passes them to `onEvents`.
 *
 * Must stay true: the position moves on only after `onEvents` has handled the events before it, so each event is
 * delivered exactly once. An outage of PostgreSQL only delays the subscription. A log that no longer holds the event
 * at its position ends it with `log-diverged`.
 */
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { batchesOf } from '../../core/kernel/whole-appends.ts';
import type { Log } from '../../core/ports/log.ts';
import { EventStoreError, type SubscribeOptions, type Subscription } from '../../core/ports/event-store.ts';
import { lastRecordOf } from '../../core/runtime/read-mark.ts';
import { failureOf } from './failures.ts';
import type { Anchor, Window } from './log-reader.ts';
import type { ReadWindow } from './shared-tail.ts';
import type { Ticks } from './ticks.ts';

const BATCH_EVENTS_MAX = 1_000;

export interface PostgresSubscription extends Subscription {
  /** A hint that the log reaches at least to the position, or to one that is not known. */
  hear(position: LogPosition | null): void;
}

export interface SubscriptionContext {
  readonly readWindow: ReadWindow;
  /** When the log is read although nobody was notified: a notification is lost when its connection is. */
  readonly polls: Ticks;
  readonly log: Log;
}

export function startSubscription(context: SubscriptionContext, options: SubscribeOptions): PostgresSubscription {
  const { readWindow, polls, log } = context;
  const categories = options.categories ?? null;
  const hint = createHint();
  let closing = false;
  let unreachable = false;

  let anchor: Anchor = { position: options.after, id: null };

  async function run(): Promise<void> {
    while (!closing) {
      const heard = hint.take();
      const window = await tryReadWindow(anchor);
      if (window?.diverged) {
        throw new EventStoreError('log-diverged', `The log no longer holds the event at position ${anchor.position}`);
      }
      if (window !== null && window.end.position > anchor.position) {
        await deliver(window);
        anchor = window.end;
      } else if (window !== null && anchor.id === null) {
        anchor = window.end;
      }
      if (window?.isOwn) hint.raise(heard);
      if (window === null || window.reachedEnd) await hint.wait(polls, anchor.position);
    }
  }

  /** Resolves with null while PostgreSQL is unreachable. */
  async function tryReadWindow(anchor: Anchor): Promise<Window | null> {
    try {
      const window = await readWindow(anchor, categories);
      if (unreachable) log.info({ position: String(anchor.position) }, 'A subscription resumes after an outage');
      unreachable = false;
      return window;
    } catch (error) {
      if (failureOf(error) === 'other') throw error;
      if (!unreachable) log.warn({ err: error }, 'A subscription waits for PostgreSQL');
      unreachable = true;
      return null;
    }
  }

  async function deliver({ events, end, lastRecord }: Window): Promise<void> {
    const batches = events.length === 0 ? [[]] : batchesOf(events, BATCH_EVENTS_MAX);
    for (const [index, batch] of batches.entries()) {
      if (closing) return;
      const isLast = index === batches.length - 1;
      if (isLast) await options.onEvents(batch, end.position, lastRecord);
      else await options.onEvents(batch, batch.at(-1)?.position ?? end.position, lastRecordOf(batch));
    }
  }

  // Starts in a later microtask, so that the caller has the subscription before the first call of `onEvents`.
  const closed = Promise.resolve().then(run);
  return {
    pull: hint.raise,
    hear: (position) => hint.raise(position ?? ANY_POSITION),
    close: async () => {
      closing = true;
      hint.raise(ANY_POSITION);
      // `closed` reports an error of the loop, so it is ignored here.
      await Promise.allSettled([closed]);
    },
    closed,
  };
}

/** Greater than the position of any event: for a hint that does not say how far the log reaches. */
const ANY_POSITION = (2n ** 63n) as LogPosition;

/** How far the log reaches, as far as the subscription has been notified since its last read. */
interface Hint {
  /** Returns the highest position raised since the last call. The caller reads the log, so it is forgotten here. */
  take(): LogPosition;
  /** The log reaches at least to the position. */
  raise(position: LogPosition): void;
  /** Resolves as soon as a position greater than this one was raised since the last `take`, or at the next tick. */
  wait(ticks: Ticks, position: LogPosition): Promise<void>;
}

function createHint(): Hint {
  let highest: LogPosition = LOG_START;
  let wake: (() => void) | null = null;
  let waitPosition: LogPosition = LOG_START;
  return {
    take: () => {
      const taken = highest;
      highest = LOG_START;
      return taken;
    },
    raise: (position) => {
      if (position > highest) highest = position;
      if (position > waitPosition) wake?.();
    },
    wait: (ticks, position) =>
      new Promise((resolve) => {
        if (highest > position) return resolve();
        const forgetTick = ticks.next(() => wake?.());
        waitPosition = position;
        wake = () => {
          forgetTick();
          wake = null;
          resolve();
        };
      }),
  };
}
