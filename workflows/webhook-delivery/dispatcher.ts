/**
 * Makes the attempts of all deliveries when they are due: which goes next, and how many at a time.
 *
 * Must stay true: whether an attempt is due, and whose it is, the delivery's own stream decides (attempt-delivery.ts); here
 * stands only what to look at when, so anything here may be lost and read again. First attempts of one webhook and repository
 * are made one after another, in their order. A receiver that is slow or dead takes places of its own host and account only.
 * Nothing is polled: one timer stands at the next due time.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import {
  type AccountId,
  msBetween,
  plusMs,
  type RepositoryId,
  type Timestamp,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../core/kernel/ids.ts';
import {
  WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX,
  WEBHOOK_ATTEMPTS_AT_ONCE_MAX,
  WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX,
  WEBHOOK_WINDOW_DELIVERIES_MAX,
} from '../../core/kernel/limits.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { DueDeliveries, PendingDeliveryRow } from '../../core/ports/read-models.ts';
import type { Looked } from '../../core/use-cases/attempt-delivery.ts';

export interface DispatcherOptions {
  readonly due: DueDeliveries;
  readonly clock: Pick<Clock, 'now'>;
  /** Calls once after so long; the function returned takes that back. */
  readonly after: (ms: number, call: () => void) => () => void;
  readonly attempt: (delivery: { readonly id: WebhookDeliveryId; readonly account: AccountId }) => Promise<Looked>;
  /** What a webhook's limit is shared by: its receiver's host. */
  readonly receiverOf: (account: AccountId, webhook: WebhookId) => Promise<string>;
  readonly onFault: (cause: unknown) => void;
}

export interface Dispatcher {
  /** Begins with what is due by now; resolves once that is known. */
  start(): Promise<void>;
  /** Something of this webhook's became due, at this place of the log. */
  heard(webhook: WebhookId, account: AccountId, position: LogPosition): void;
  /** Starts nothing more; resolves when nothing is under way. */
  close(): Promise<void>;
  /** Attempts under way. */
  running(): number;
}

/** After a fault of ours, a delivery or a webhook is looked at again so much later. */
const FAULT_PAUSE_MS = 5_000;
/** Timers hold no longer; what is due later is looked at then and waited for again. */
const TIMER_MS_MAX = 24 * 60 * 60_000;

/** What is known of a webhook with deliveries that have not ended. */
interface Lane {
  readonly webhook: WebhookId;
  readonly account: AccountId;
  receiver: string;
  /** First attempts in their order, then others. */
  window: PendingDeliveryRow[];
  /** Whether the read model may have more than the window. */
  more: boolean;
  /** Whether an attempt ended since the window was read: reading it again can tell more. */
  moved: boolean;
  /** How far the read model must be before it is asked. */
  position: LogPosition;
  reading: boolean;
  stale: boolean;
  /** When something may be due that is not in the window yet. */
  readAt: Timestamp | null;
  readonly running: Map<WebhookDeliveryId, PendingDeliveryRow>;
}

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new Lanes(options);
}

class Lanes implements Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #lanes = new Map<WebhookId, Lane>();
  /** Lanes to look at, each once, in turn. */
  readonly #ready = new Set<Lane>();
  /** Lanes that wait for a place of their host or account. */
  readonly #full = new Set<Lane>();
  readonly #hosts = new Map<string, number>();
  readonly #accounts = new Map<AccountId, number>();
  readonly #underWay = new Set<Promise<void>>();
  #timer: { readonly at: Timestamp; readonly cancel: () => void } | null = null;
  #running = 0;
  #closed = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    for (const { webhook, account, dueAt } of await this.#options.due.pendingWebhooks()) {
      const lane = this.#lane(webhook, account);
      lane.readAt = dueAt;
      this.#wakeAt(dueAt);
    }
  }

  heard(webhook: WebhookId, account: AccountId, position: LogPosition): void {
    if (this.#closed) return;
    const lane = this.#lane(webhook, account);
    if (position > lane.position) lane.position = position;
    // A window that left out first attempts is read again when it runs dry of those it holds.
    if (!lane.more || !lane.window.some(({ isFirst }) => isFirst)) this.#read(lane);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#timer = null;
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  running(): number {
    return this.#running;
  }

  #lane(webhook: WebhookId, account: AccountId): Lane {
    const known = this.#lanes.get(webhook);
    if (known !== undefined) return known;
    const lane: Lane = {
      ...{ webhook, account, receiver: webhook, window: [], more: false, moved: false },
      ...{ position: NOWHERE, reading: false, stale: false, readAt: null, running: new Map() },
    };
    this.#lanes.set(webhook, lane);
    return lane;
  }

  /** Reads the window anew; whoever asks meanwhile is answered by one reading more. */
  #read(lane: Lane): void {
    if (lane.reading) {
      lane.stale = true;
      return;
    }
    lane.reading = true;
    this.#follow(this.#readWindow(lane));
  }

  async #readWindow(lane: Lane): Promise<void> {
    const { due, receiverOf, onFault } = this.#options;
    do {
      lane.stale = false;
      lane.moved = false;
      lane.readAt = null;
      try {
        await due.seen(lane.position);
        const found = await due.pendingDeliveries(lane.webhook, WEBHOOK_WINDOW_DELIVERIES_MAX);
        lane.receiver = await receiverOf(lane.account, lane.webhook);
        // An attempt that ended while this was read is known better than it was read.
        if (lane.moved) lane.stale = true;
        lane.window = found.filter(({ id }) => !lane.running.has(id));
        const firsts = found.filter(({ isFirst }) => isFirst).length;
        lane.more = Math.max(firsts, found.length - firsts) >= WEBHOOK_WINDOW_DELIVERIES_MAX;
      } catch (error) {
        onFault(error);
        lane.readAt = plusMs(this.#options.clock.now(), FAULT_PAUSE_MS);
        lane.stale = false;
      }
    } while (lane.stale && !this.#closed);
    lane.reading = false;
    this.#ready.add(lane);
    this.#pump();
  }

  /** Starts what may start, one of each lane in turn. */
  #pump(): void {
    for (const lane of this.#ready) {
      if (this.#closed || this.#running >= WEBHOOK_ATTEMPTS_AT_ONCE_MAX) return;
      this.#ready.delete(lane);
      const next = this.#nextOf(lane);
      if (next === null) {
        this.#rest(lane);
      } else if (this.#hasPlace(lane)) {
        this.#begin(lane, next);
        // Behind the others: a set is gone through in the order of coming.
        this.#ready.add(lane);
      } else {
        this.#full.add(lane);
      }
    }
  }

  #hasPlace({ receiver, account }: Lane): boolean {
    return (
      (this.#hosts.get(receiver) ?? 0) < WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX &&
      (this.#accounts.get(account) ?? 0) < WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX
    );
  }

  /** What is due and not held up by an earlier first attempt. */
  #nextOf(lane: Lane): PendingDeliveryRow | null {
    const now = this.#options.clock.now();
    return startable(lane).find(({ dueAt }) => dueAt <= now) ?? null;
  }

  /** Nothing can start: says when to look again, or forgets the lane. */
  #rest(lane: Lane): void {
    const times = startable(lane).map(({ dueAt }) => dueAt);
    if (lane.readAt !== null) times.push(lane.readAt);
    if (!lane.reading && lane.more && lane.moved && times.every((at) => at > this.#options.clock.now())) {
      this.#read(lane);
      return;
    }
    const earliest = times.reduce<Timestamp | null>((least, at) => (least === null || at < least ? at : least), null);
    if (earliest !== null) this.#wakeAt(earliest);
    else if (lane.window.length === 0 && lane.running.size === 0 && !lane.reading) this.#lanes.delete(lane.webhook);
  }

  #begin(lane: Lane, delivery: PendingDeliveryRow): void {
    const { receiver, account } = lane;
    lane.window = lane.window.filter((other) => other !== delivery);
    lane.running.set(delivery.id, delivery);
    this.#running += 1;
    add(this.#hosts, receiver, 1);
    add(this.#accounts, account, 1);
    const ended = this.#attempt(lane, delivery).finally(() => {
      lane.running.delete(delivery.id);
      lane.moved = true;
      this.#running -= 1;
      add(this.#hosts, receiver, -1);
      add(this.#accounts, account, -1);
      this.#ready.add(lane);
      for (const waiting of this.#full) {
        if (waiting.receiver !== receiver && waiting.account !== account) continue;
        this.#full.delete(waiting);
        this.#ready.add(waiting);
      }
      this.#pump();
    });
    this.#follow(ended);
  }

  async #attempt(lane: Lane, delivery: PendingDeliveryRow): Promise<void> {
    const { attempt, onFault, clock } = this.#options;
    try {
      const { dueAt, isFirst, position } = await attempt({ id: delivery.id, account: delivery.account });
      if (position > lane.position) lane.position = position;
      if (dueAt !== null) this.#keep(lane, { ...delivery, isFirst, dueAt });
    } catch (error) {
      onFault(error);
      this.#keep(lane, { ...delivery, dueAt: plusMs(clock.now(), FAULT_PAUSE_MS) });
    }
  }

  /** Puts a delivery back to wait, unless there are so many that the read model holds it better. */
  #keep(lane: Lane, delivery: PendingDeliveryRow): void {
    if (delivery.isFirst) {
      lane.window = [delivery, ...lane.window];
      return;
    }
    lane.window = [...lane.window, delivery];
    if (lane.window.length <= 2 * WEBHOOK_WINDOW_DELIVERIES_MAX) return;
    const latest = lane.window.filter(({ isFirst }) => !isFirst).toSorted((a, b) => (a.dueAt < b.dueAt ? 1 : -1))[0];
    lane.window = lane.window.filter((other) => other !== latest);
    lane.more = true;
    if (latest !== undefined && (lane.readAt === null || latest.dueAt < lane.readAt)) lane.readAt = latest.dueAt;
  }

  #wakeAt(at: Timestamp): void {
    if (this.#closed || (this.#timer !== null && this.#timer.at <= at)) return;
    this.#timer?.cancel();
    const ms = Math.min(Math.max(0, msBetween(this.#options.clock.now(), at)), TIMER_MS_MAX);
    this.#timer = { at, cancel: this.#options.after(ms, () => this.#wake()) };
  }

  #wake(): void {
    this.#timer = null;
    const now = this.#options.clock.now();
    for (const lane of this.#lanes.values()) {
      if (lane.readAt !== null && lane.readAt <= now) this.#read(lane);
      else if (!this.#full.has(lane)) this.#ready.add(lane);
    }
    this.#pump();
  }

  #follow(work: Promise<void>): void {
    const followed = work.catch(this.#options.onFault).finally(() => this.#underWay.delete(followed));
    this.#underWay.add(followed);
  }
}

const NOWHERE = 0n as LogPosition;

/** The first attempts that are the next of their repository, and everything else. */
function startable({ window, running }: Lane): readonly PendingDeliveryRow[] {
  const taken = new Set<RepositoryId | null>();
  for (const { isFirst, repository } of running.values()) if (isFirst && repository !== null) taken.add(repository);
  return window.filter(({ isFirst, repository }) => {
    if (!isFirst || repository === null) return true;
    if (taken.has(repository)) return false;
    taken.add(repository);
    return true;
  });
}

function add<Key>(counts: Map<Key, number>, key: Key, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
