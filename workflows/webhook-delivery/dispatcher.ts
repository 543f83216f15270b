/**
 * Makes the attempts of all deliveries that are due: which goes next, and how many at a time.
 *
 * Must stay true: whether an attempt is due, and whose it is, the delivery's own stream decides (attempt-delivery.ts); here
 * stands only what to look at, so anything here may be lost and read again. It waits for no delivery's time: that is the
 * workflow's (logic.ts), and the log tells when it has come; the one alarm here is for faults of our own. First attempts of
 * one webhook and repository are made one after another, in their order. A receiver that is slow or dead takes places of
 * its own host and account only.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import {
  type AccountId,
  plusMs,
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
import type { Alarm, Clock } from '../../core/ports/clock.ts';
import type { DueDeliveries, DueDeliveryRow } from '../../core/ports/read-models.ts';
import type { Looked } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import { fill, isLeftOut, type Lane, newLane, nextOf, NOWHERE, putBack, type Running, runsDry, leave } from './lane.ts';

export interface DispatcherOptions {
  readonly due: DueDeliveries;
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: Alarm;
  readonly attempt: (delivery: { readonly id: WebhookDeliveryId; readonly account: AccountId }) => Promise<Looked>;
  /** What a webhook's limit is shared by: its receiver's host. */
  readonly receiverOf: (account: AccountId, webhook: WebhookId) => Promise<string>;
  readonly onFault: (cause: unknown) => void;
}

/** What the log says of a delivery, at this place of it. */
export interface HeardDelivery {
  readonly id: WebhookDeliveryId;
  readonly webhook: WebhookId;
  readonly account: AccountId;
  readonly position: LogPosition;
}

export interface Dispatcher {
  /** Begins with what is due by now; resolves once that is known. */
  start(): Promise<void>;
  /** An attempt fell due: the delivery's first, a claimed one's again, or one after a failure. */
  due(delivery: HeardDelivery, attempt: 'first' | 'claimed' | 'later'): void;
  /** A first attempt was recorded, by this process or another: what waited behind it may go. */
  recorded(delivery: HeardDelivery): void;
  /** Starts nothing more; resolves when nothing is under way. */
  close(): Promise<void>;
  /** Attempts under way. */
  running(): number;
}

/** After a fault of ours, a delivery or a webhook is looked at again so much later. */
const FAULT_PAUSE_MS = 5_000;

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
  #alarm: { readonly at: Timestamp; readonly ending: AbortController } | null = null;
  #running = 0;
  #closed = false;

  constructor(options: DispatcherOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    for (const { webhook, account } of await this.#options.due.dueWebhooks()) this.#read(this.#lane(webhook, account));
  }

  due({ id, webhook, account, position }: HeardDelivery, attempt: 'first' | 'claimed' | 'later'): void {
    if (this.#closed) return;
    const lane = this.#lane(webhook, account);
    if (position > lane.position) lane.position = position;
    const running = lane.running.get(id);
    // Whoever makes an attempt looks at the stream after it: that may have been before this.
    if (running !== undefined) running.heardAt = position;
    else if (lane.reading || attempt === 'claimed' || !isLeftOut(lane, attempt === 'first')) this.#read(lane);
  }

  recorded({ id, webhook, position }: HeardDelivery): void {
    const lane = this.#lanes.get(webhook);
    if (this.#closed || lane === undefined) return;
    // What is being read may show it as it was before.
    if (!lane.reading && !lane.window.some((row) => row.id === id && !row.isDue)) return;
    if (position > lane.position) lane.position = position;
    this.#read(lane);
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#alarm?.ending.abort();
    this.#alarm = null;
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  running(): number {
    return this.#running;
  }

  #lane(webhook: WebhookId, account: AccountId): Lane {
    const known = this.#lanes.get(webhook);
    if (known !== undefined) return known;
    const lane = newLane(webhook, account);
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
    const { due, receiverOf, onFault, clock } = this.#options;
    do {
      lane.stale = false;
      lane.moved = false;
      lane.readAt = null;
      try {
        await due.seen(lane.position);
        const found = await due.dueDeliveries(lane.webhook, WEBHOOK_WINDOW_DELIVERIES_MAX);
        lane.receiver = await receiverOf(lane.account, lane.webhook);
        // An attempt that ended while this was read is known better than it was read.
        if (lane.moved) lane.stale = true;
        fill(lane, found);
      } catch (error) {
        onFault(error);
        lane.readAt = plusMs(clock.now(), FAULT_PAUSE_MS);
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
      const now = this.#options.clock.now();
      const next = nextOf(lane, now);
      if (next === null) {
        this.#rest(lane, now);
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

  /** Nothing can start: reads what the window left out, waits for what is held, or forgets the lane. */
  #rest(lane: Lane, now: Timestamp): void {
    if (!lane.reading && lane.moved && runsDry(lane)) {
      this.#read(lane);
      return;
    }
    const times = [...lane.held.values()].filter((at) => at > now);
    if (lane.readAt !== null) times.push(lane.readAt);
    const earliest = times.reduce<Timestamp | null>((least, at) => (least === null || at < least ? at : least), null);
    if (earliest !== null) this.#wakeAt(earliest);
    else if (lane.window.length === 0 && lane.running.size === 0 && !lane.reading) this.#lanes.delete(lane.webhook);
  }

  #begin(lane: Lane, row: DueDeliveryRow): void {
    const { receiver, account } = lane;
    lane.window = lane.window.filter((other) => other !== row);
    lane.held.delete(row.id);
    const running: Running = { row, heardAt: NOWHERE };
    lane.running.set(row.id, running);
    this.#running += 1;
    add(this.#hosts, receiver, 1);
    add(this.#accounts, account, 1);
    const ended = this.#attempt(lane, running).finally(() => {
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

  async #attempt(lane: Lane, running: Running): Promise<void> {
    const { attempt, onFault, clock } = this.#options;
    const { row } = running;
    try {
      const { dueAt, isFirst, position } = await attempt({ id: row.id, account: row.account });
      leave(lane, row);
      if (position > lane.position) lane.position = position;
      if (dueAt !== null || isFirst) putBack(lane, { ...row, isFirst, isDue: dueAt !== null });
      if (dueAt !== null) lane.held.set(row.id, dueAt);
      if (running.heardAt > position) this.#read(lane);
    } catch (error) {
      onFault(error);
      leave(lane, row);
      putBack(lane, row);
      lane.held.set(row.id, plusMs(clock.now(), FAULT_PAUSE_MS));
    }
  }

  #wakeAt(at: Timestamp): void {
    if (this.#closed || (this.#alarm !== null && this.#alarm.at <= at)) return;
    this.#alarm?.ending.abort();
    const ending = new AbortController();
    this.#alarm = { at, ending };
    this.#follow(
      this.#options.alarm.until(at, ending.signal).then(() => {
        if (!ending.signal.aborted) this.#wake();
      }),
    );
  }

  #wake(): void {
    this.#alarm = null;
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

function add<Key>(counts: Map<Key, number>, key: Key, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
