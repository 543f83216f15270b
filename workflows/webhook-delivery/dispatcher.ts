/**
 * Makes the attempts of all due deliveries: decides which is next, and how many run at the same time.
 *
 * Invariants:
 * - The delivery's own stream decides whether an attempt is due and which process makes it (attempt-delivery.ts). The
 *   state here only says which streams to read, so all of it may be lost and read again.
 * - The dispatcher waits for no delivery's time: the workflow does (logic.ts), and the log says when the time has come.
 *   The one alarm here is for failures inside this program.
 * - First attempts of one webhook and repository are made one after another, in their order.
 * - A slow or dead receiver occupies only places of its own host and account.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import {
  type AccountId,
  plusMs,
  type Timestamp,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../core/kernel/ids.ts';
import type { Alarm, Clock } from '../../core/ports/clock.ts';
import type { DueDeliveries, DueDeliveryRow } from '../../core/ports/due-deliveries.ts';
import type { DeliverySchedule } from '../../core/use-cases/webhooks/attempt-delivery.ts';
import {
  endAttempt,
  type Lane,
  leavesOut,
  NO_POSITION,
  newLane,
  nextStartable,
  putBack,
  type Running,
  runsLow,
  setWindow,
} from './lane.ts';
import { WEBHOOK_WINDOW_DELIVERIES_MAX } from './limits.ts';

/** Concurrent attempts: in all, to one receiver's host, and for one account. Internal: further attempts wait. */
const WEBHOOK_ATTEMPTS_AT_ONCE_MAX = 400;
export const WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX = 8;
export const WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX = 16;

export interface DispatcherOptions {
  readonly due: DueDeliveries;
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: Alarm;
  readonly attempt: (delivery: {
    readonly id: WebhookDeliveryId;
    readonly account: AccountId;
  }) => Promise<DeliverySchedule>;
  /** Returns what webhooks share a limit by: the receiver's host. */
  readonly receiverOf: (account: AccountId, webhook: WebhookId) => Promise<string>;
  readonly onFault: (cause: unknown) => void;
}

/** A delivery that an event concerns, and the event's position. */
export interface DeliveryEntry {
  readonly id: WebhookDeliveryId;
  readonly webhook: WebhookId;
  readonly account: AccountId;
  readonly position: LogPosition;
}

export interface Dispatcher {
  /** Starts with what is due now; resolves when the webhooks with due deliveries are known. */
  start(): Promise<void>;
  /** An attempt is due: the delivery's first, a claimed one whose claim expired, or one after a failure. */
  due(delivery: DeliveryEntry, attempt: 'first' | 'claimed' | 'later'): void;
  /** A first attempt was recorded, by this process or another: the attempts that waited behind it may start. */
  recorded(delivery: DeliveryEntry): void;
  /** Starts no more attempts; resolves when none is running. */
  close(): Promise<void>;
  /** The number of running attempts. */
  running(): number;
}

/** The pause before a delivery or a webhook is read again after a failure inside this program. */
const FAULT_PAUSE_MS = 5_000;

export function createDispatcher(options: DispatcherOptions): Dispatcher {
  return new Lanes(options);
}

class Lanes implements Dispatcher {
  readonly #options: DispatcherOptions;
  readonly #lanes = new Map<WebhookId, Lane>();
  /** Lanes that may have something to start, each once, in turn. */
  readonly #ready = new Set<Lane>();
  /** Lanes that wait for a free place of their host or account. */
  readonly #withoutPlace = new Set<Lane>();
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

  due({ id, webhook, account, position }: DeliveryEntry, attempt: 'first' | 'claimed' | 'later'): void {
    if (this.#closed) return;
    const lane = this.#lane(webhook, account);
    if (position > lane.position) lane.position = position;
    const running = lane.running.get(id);
    // The running attempt reads the stream at its end, but it may have done so before this event.
    if (running !== undefined) running.dueAgainAt = position;
    else if (lane.reading || attempt === 'claimed' || !leavesOut(lane, attempt === 'first')) this.#read(lane);
  }

  recorded({ id, webhook, position }: DeliveryEntry): void {
    const lane = this.#lanes.get(webhook);
    if (this.#closed || lane === undefined) return;
    // A reading that is under way may return the delivery's row as it was before this event.
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

  /** Reads the window again. If a reading is under way, one more follows it for all callers. */
  #read(lane: Lane): void {
    if (lane.reading) {
      lane.readAgain = true;
      return;
    }
    lane.reading = true;
    this.#track(this.#readWindow(lane));
  }

  async #readWindow(lane: Lane): Promise<void> {
    const { due, receiverOf, onFault, clock } = this.#options;
    do {
      lane.readAgain = false;
      lane.attemptEnded = false;
      lane.readAt = null;
      try {
        await due.deliveriesCaughtUp(lane.position);
        const found = await due.dueDeliveries(lane.webhook, WEBHOOK_WINDOW_DELIVERIES_MAX);
        lane.receiver = await receiverOf(lane.account, lane.webhook);
        // An attempt ended since: the rows that were read may be older than that.
        if (lane.attemptEnded) lane.readAgain = true;
        setWindow(lane, found);
      } catch (error) {
        onFault(error);
        lane.readAt = plusMs(clock.now(), FAULT_PAUSE_MS);
        lane.readAgain = false;
      }
    } while (lane.readAgain && !this.#closed);
    lane.reading = false;
    this.#ready.add(lane);
    this.#pump();
  }

  /** Starts what may start, one attempt of each lane in turn. */
  #pump(): void {
    for (const lane of this.#ready) {
      if (this.#closed || this.#running >= WEBHOOK_ATTEMPTS_AT_ONCE_MAX) return;
      this.#ready.delete(lane);
      const now = this.#options.clock.now();
      const next = nextStartable(lane, now);
      if (next === null) {
        this.#handleIdle(lane, now);
      } else if (this.#hasPlace(lane)) {
        this.#begin(lane, next);
        // Behind the other lanes: a set iterates in the order of insertion.
        this.#ready.add(lane);
      } else {
        this.#withoutPlace.add(lane);
      }
    }
  }

  #hasPlace({ receiver, account }: Lane): boolean {
    return (
      (this.#hosts.get(receiver) ?? 0) < WEBHOOK_HOST_ATTEMPTS_AT_ONCE_MAX &&
      (this.#accounts.get(account) ?? 0) < WEBHOOK_ACCOUNT_ATTEMPTS_AT_ONCE_MAX
    );
  }

  /**
   * Handles a lane that can start nothing: reads what the window left out, sets the alarm for pauses, or drops the
   * lane.
   */
  #handleIdle(lane: Lane, now: Timestamp): void {
    if (!lane.reading && lane.attemptEnded && runsLow(lane)) {
      this.#read(lane);
      return;
    }
    const times = [...lane.pausedUntil.values()].filter((at) => at > now);
    if (lane.readAt !== null) times.push(lane.readAt);
    const earliest = times.reduce<Timestamp | null>((least, at) => (least === null || at < least ? at : least), null);
    if (earliest !== null) this.#wakeAt(earliest);
    else if (lane.window.length === 0 && lane.running.size === 0 && !lane.reading) this.#lanes.delete(lane.webhook);
  }

  #begin(lane: Lane, row: DueDeliveryRow): void {
    const { receiver, account } = lane;
    lane.window = lane.window.filter((other) => other !== row);
    lane.pausedUntil.delete(row.id);
    const running: Running = { row, dueAgainAt: NO_POSITION };
    lane.running.set(row.id, running);
    this.#running += 1;
    add(this.#hosts, receiver, 1);
    add(this.#accounts, account, 1);
    const ended = this.#attempt(lane, running).finally(() => {
      this.#running -= 1;
      add(this.#hosts, receiver, -1);
      add(this.#accounts, account, -1);
      this.#ready.add(lane);
      for (const waiting of this.#withoutPlace) {
        if (waiting.receiver !== receiver && waiting.account !== account) continue;
        this.#withoutPlace.delete(waiting);
        this.#ready.add(waiting);
      }
      this.#pump();
    });
    this.#track(ended);
  }

  async #attempt(lane: Lane, running: Running): Promise<void> {
    const { attempt, onFault, clock } = this.#options;
    const { row } = running;
    try {
      const { dueAt, isFirst, position } = await attempt({ id: row.id, account: row.account });
      endAttempt(lane, row);
      if (position > lane.position) lane.position = position;
      if (dueAt !== null || isFirst) putBack(lane, { ...row, isFirst, isDue: dueAt !== null });
      if (dueAt !== null) lane.pausedUntil.set(row.id, dueAt);
      if (running.dueAgainAt > position) this.#read(lane);
    } catch (error) {
      onFault(error);
      endAttempt(lane, row);
      putBack(lane, row);
      lane.pausedUntil.set(row.id, plusMs(clock.now(), FAULT_PAUSE_MS));
    }
  }

  #wakeAt(at: Timestamp): void {
    if (this.#closed || (this.#alarm !== null && this.#alarm.at <= at)) return;
    this.#alarm?.ending.abort();
    const ending = new AbortController();
    this.#alarm = { at, ending };
    this.#track(
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
      else if (!this.#withoutPlace.has(lane)) this.#ready.add(lane);
    }
    this.#pump();
  }

  #track(work: Promise<void>): void {
    const followed = work.catch(this.#options.onFault).finally(() => this.#underWay.delete(followed));
    this.#underWay.add(followed);
  }
}

function add<Key>(counts: Map<Key, number>, key: Key, change: number): void {
  const count = (counts.get(key) ?? 0) + change;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
}
