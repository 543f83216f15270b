/**
 * One subscription: a loop that reads the events after its position and passes them to `onEvents`.
 *
 * Invariants: the position moves on only after `onEvents` has handled the events before it, so each event is
 * delivered exactly once. An outage of PostgreSQL only delays the subscription. A log that no longer holds the event
 * at its position ends it with `log-diverged`. A pull is never delayed by what lingers.
 */
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import { batchesOf } from '../../core/kernel/whole-appends.ts';
import { EventStoreError, type SubscribeOptions, type Subscription } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import { lastRecordOf } from '../../core/runtime/read-mark.ts';
import { failureOf } from './failures.ts';
import type { Anchor, Window } from './log-reader.ts';
import type { ReadWindow } from './shared-tail.ts';
import type { Ticks } from './ticks.ts';

/** Events that a subscriber gets together. Internal: the rest follows. */
const BATCH_EVENTS_MAX = 1_000;

export interface PostgresSubscription extends Subscription {
  /** A hint that the log reaches at least to the position; nobody waits for the subscriber. */
  hear(position: LogPosition): void;
}

export interface SubscriptionContext {
  readonly readWindow: ReadWindow;
  /** When the log is read although nobody was notified: a notification is lost when its connection is. */
  readonly polls: Ticks;
  /** When subscriptions that linger read what they have heard of. */
  readonly lingering: Ticks;
  readonly log: Log;
}

export function startSubscription(context: SubscriptionContext, options: SubscribeOptions): PostgresSubscription {
  const { readWindow, polls, lingering, log } = context;
  const { categories = null, lingers = false } = options;
  const hint = createHint(polls, lingers ? lingering : null);
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
      if (window?.isOwn) hint.putBack(heard);
      if (window === null || window.reachedEnd) await hint.wait(anchor.position);
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
    pull: hint.pull,
    hear: hint.hear,
    close: async () => {
      closing = true;
      hint.pull(ANY_POSITION);
      // `closed` reports an error of the loop, so it is ignored here.
      await Promise.allSettled([closed]);
    },
    closed,
  };
}

/** Greater than the position of any event: for a hint that does not say how far the log reaches. */
export const ANY_POSITION = (2n ** 63n) as LogPosition;

/** How far the log reaches, as far as the subscription was told since its last read. */
interface Told {
  readonly heard: LogPosition;
  /** Up to where somebody waits for the subscriber. */
  readonly pulled: LogPosition;
}

const NOTHING: Told = { heard: LOG_START, pulled: LOG_START };

interface Hint {
  /** Returns what the subscription was told since the last call. The caller reads the log, so it is forgotten here. */
  take(): Told;
  putBack(told: Told): void;
  /** The log reaches at least to the position. */
  hear(position: LogPosition): void;
  /** The same, and the subscription must not linger. */
  pull(position: LogPosition): void;
  /**
   * Resolves as soon as the subscription was pulled beyond the position, when it has lingered after it heard of a
   * greater one, or at the next poll.
   */
  wait(position: LogPosition): Promise<void>;
}

function createHint(polls: Ticks, lingering: Ticks | null): Hint {
  let told = NOTHING;
  let onTold: (() => void) | null = null;

  function tell({ heard, pulled }: Told): void {
    told = { heard: greater(told.heard, heard), pulled: greater(told.pulled, pulled) };
    onTold?.();
  }

  return {
    take: () => {
      const taken = told;
      told = NOTHING;
      return taken;
    },
    putBack: tell,
    hear: (position) => tell({ heard: position, pulled: LOG_START }),
    pull: (position) => tell({ heard: position, pulled: position }),
    wait: (position) =>
      new Promise((resolve) => {
        let isLingering = false;
        const end = (): void => {
          onTold = null;
          forgetTick();
          resolve();
        };
        let forgetTick = polls.next(end);
        onTold = () => {
          if (told.pulled > position || (told.heard > position && lingering === null)) end();
          else if (told.heard > position && lingering !== null && !isLingering) {
            isLingering = true;
            forgetTick();
            forgetTick = lingering.next(end);
          }
        };
        onTold();
      }),
  };
}

function greater(one: LogPosition, other: LogPosition): LogPosition {
  return one > other ? one : other;
}
