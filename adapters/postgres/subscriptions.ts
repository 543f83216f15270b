/**
 * The subscriptions of one process, and how they learn how far the log reaches.
 *
 * Invariants: nothing lingers over an append of another process, because its readers cannot tell this one that they
 * wait. A notification is only a hint, and any database user can send one.
 */
import { LOG_START, type LogPosition } from '../../core/kernel/envelope.ts';
import type { SubscribeOptions, Subscription } from '../../core/ports/event-store.ts';
import {
  ANY_POSITION,
  type PostgresSubscription,
  type SubscriptionContext,
  startSubscription,
} from './subscription.ts';

export interface Subscriptions {
  start(options: SubscribeOptions): Subscription;
  /** This process appended up to the position. The append is not answered yet, and `hear` follows. */
  appended(position: LogPosition): void;
  /** The log reaches at least to the position; those that linger take their time. */
  hear(position: LogPosition): void;
  /** PostgreSQL notified this process of an append, its own or another's. */
  notified(payload: string): void;
  /** The log may reach anywhere. */
  look(): void;
  /** Ends all of them. */
  close(): Promise<void>;
}

export interface SubscriptionsOptions extends SubscriptionContext {
  /** Whether appends of this process are under way, which may be notified before they are answered. */
  readonly isAppending: () => boolean;
}

export function createSubscriptions({ isAppending, ...context }: SubscriptionsOptions): Subscriptions {
  const open = new Set<PostgresSubscription>();
  let ownPosition = LOG_START;

  function hear(position: LogPosition): void {
    for (const subscription of open) subscription.hear(position);
  }

  function pull(position: LogPosition): void {
    for (const subscription of open) subscription.pull(position);
  }

  return {
    start: (options) => {
      const subscription = startSubscription(context, options);
      open.add(subscription);
      const forget = () => open.delete(subscription);
      subscription.closed.then(forget, forget);
      return subscription;
    },
    appended: (position) => {
      if (position > ownPosition) ownPosition = position;
    },
    hear,
    notified: (payload) => {
      const head = headOf(payload);
      if (head > ownPosition && !isAppending()) pull(head);
      else hear(head);
    },
    look: () => pull(ANY_POSITION),
    close: async () => {
      // A subscription that failed reports its error to its owner through `closed`, so it is ignored here.
      await Promise.allSettled([...open].map((subscription) => subscription.close()));
    },
  };
}

/** A notification that holds no position is a hint as well. */
function headOf(payload: string): LogPosition {
  return /^\d{1,18}$/.test(payload) ? (BigInt(payload) as LogPosition) : ANY_POSITION;
}
