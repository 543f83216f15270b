/**
 * Follows the log from its head, and knows how far this node has applied it.
 *
 * Invariants (docs/architecture.md, invariant 6):
 * - when `barrier()` has resolved, every event up to the log's head at some moment after the call is applied;
 * - whenever the position skips events, or the log may have lost events that were applied, `forget` is called in the
 *   same step that moves the position;
 * - under a read lease no head is read: what this process has heard of is as new as the head (read-leases.ts);
 * - after a subscription fails, a new one starts at the head. While the log is down, this waits for the next barrier,
 *   so an outage causes no busy loop.
 */
import { LOG_START, type LogPosition, type RecordedEvent } from '../kernel/envelope.ts';
import { type EventStore, EventStoreError, type Subscription } from '../ports/event-store.ts';
import type { ReadLeases } from './read-leases.ts';

export interface LogFollowerOptions {
  readonly events: Pick<EventStore, 'head' | 'subscribe'>;
  /** Without them each barrier reads the head. */
  readonly leases?: ReadLeases;
  /** Called with events in log order. A rejection ends the subscription. */
  readonly apply: (events: readonly RecordedEvent[]) => Promise<void>;
  /** Called when the receiver must discard everything applied so far. */
  readonly forget: () => void;
  readonly onFault: (what: 'subscription' | 'log-went-back', cause: unknown) => void;
  /** Delays a read of the head until all calls made at this moment have arrived, so that one read serves them all. */
  readonly gather: () => Promise<void>;
}

interface HeadWaiter {
  resolve(position: LogPosition): void;
  reject(cause: unknown): void;
}

interface Waiter extends HeadWaiter {
  readonly position: LogPosition;
}

export class LogFollower {
  readonly #options: LogFollowerOptions;
  #applied: LogPosition = LOG_START;
  /** Null before the first barrier, and between a failure and the next subscription. */
  #subscription: Subscription | null = null;
  /** Counts subscriptions: events and errors of an older one are ignored. */
  #epoch = 0;
  #closed = false;
  #waiters: Waiter[] = [];
  #headWaiters: HeadWaiter[] = [];
  #headReading = false;

  constructor(options: LogFollowerOptions) {
    this.#options = options;
  }

  /** The position up to which the log was applied. */
  get applied(): LogPosition {
    return this.#applied;
  }

  /** What `barrier` would resolve to, if it is known without waiting; else null. */
  known(): LogPosition | null {
    const { leases } = this.#options;
    if (leases === undefined || this.#subscription === null || this.#closed || !leases.isHeld()) return null;
    const heard = leases.heard();
    // What is applied has left the log, so it is settled.
    return this.#applied >= heard ? this.#applied : null;
  }

  /**
   * Resolves when the log was applied up to a head read after the call, or up to what a lease answers for. Concurrent
   * calls share one read.
   */
  async barrier(): Promise<LogPosition> {
    if (this.#closed) throw closedError();
    const { leases } = this.#options;
    if (leases !== undefined && this.#subscription !== null) {
      if (leases.isHeld()) return this.#caughtUp(leases.heard());
      leases.want();
    }
    const head = new Promise<LogPosition>((resolve, reject) => this.#headWaiters.push({ resolve, reject }));
    if (!this.#headReading) this.#readHeads().catch((cause: unknown) => this.#rejectHeadWaiters(cause));
    return this.#caughtUp(await head);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const subscription = this.#detach();
    this.#rejectWaiters(closedError());
    await subscription?.close();
  }

  /** One query serves every call that arrived before it was sent. */
  async #readHeads(): Promise<void> {
    this.#headReading = true;
    try {
      while (this.#headWaiters.length > 0) {
        await this.#options.gather();
        const waiting = this.#headWaiters.splice(0);
        const appliedBefore = this.#applied;
        try {
          const head = await this.#options.events.head();
          if (head < appliedBefore) this.#stopFollowing(head);
          if (this.#subscription === null && !this.#closed) this.#followFrom(head);
          for (const waiter of waiting) waiter.resolve(head);
        } catch (cause) {
          for (const waiter of waiting) waiter.reject(cause);
        }
      }
    } finally {
      this.#headReading = false;
    }
  }

  #rejectHeadWaiters(cause: unknown): void {
    for (const waiter of this.#headWaiters.splice(0)) waiter.reject(cause);
  }

  /** Ends the subscription to a log that is behind this node: a failover lost its tail, and with it applied events. */
  #stopFollowing(head: LogPosition): void {
    const { onFault } = this.#options;
    onFault('log-went-back', new Error(`The log's head is ${head}, this node had applied ${this.#applied}`));
    this.#options.leases?.forget(head);
    this.#detach()
      ?.close()
      .catch((cause: unknown) => onFault('subscription', cause));
  }

  #detach(): Subscription | null {
    const subscription = this.#subscription;
    this.#subscription = null;
    this.#epoch += 1;
    return subscription;
  }

  #followFrom(head: LogPosition): void {
    this.#options.forget();
    this.#applied = head;
    const epoch = this.#epoch;
    this.#subscription = this.#options.events.subscribe({
      after: head,
      onEvents: (events, position) => this.#apply(epoch, events, position),
    });
    this.#subscription.closed.catch((cause: unknown) => this.#onFailure(epoch, cause));
    // Each waiter had called before this head was read, so the head is new enough for all of them.
    for (const waiter of this.#waiters.splice(0)) waiter.resolve(head);
  }

  #onFailure(epoch: number, cause: unknown): void {
    if (epoch !== this.#epoch) return;
    this.#detach();
    this.#options.onFault('subscription', cause);
    this.barrier().catch((outage: unknown) => {
      this.#options.onFault('subscription', outage);
      this.#rejectWaiters(outage);
    });
  }

  async #apply(epoch: number, events: readonly RecordedEvent[], position: LogPosition): Promise<void> {
    if (epoch !== this.#epoch) return;
    await this.#options.apply(events);
    if (epoch !== this.#epoch) return;
    this.#applied = position;
    for (const waiter of this.#waiters.splice(0)) {
      if (waiter.position <= position) waiter.resolve(waiter.position);
      else this.#waiters.push(waiter);
    }
  }

  #rejectWaiters(cause: unknown): void {
    for (const waiter of this.#waiters.splice(0)) waiter.reject(cause);
  }

  #caughtUp(position: LogPosition): LogPosition | Promise<LogPosition> {
    if (this.#applied >= position) return position;
    if (this.#closed) throw closedError();
    this.#subscription?.pull(position);
    return new Promise((resolve, reject) => this.#waiters.push({ position, resolve, reject }));
  }
}

function closedError(): EventStoreError {
  return new EventStoreError('log-unavailable', 'This node no longer follows the log');
}
