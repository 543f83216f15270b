/**
 * Accounts whose pushes wait: for an hour with room in their plan's budget, or until fewer of their deliveries are
 * pending.
 *
 * Invariants: while an account is stalled each of its pushes waits behind the earlier ones, as a row for each
 * webhook, or as one row while there are too many of those. So its pushes go on in their order, and the log is read on
 * for everybody else. All calls for one account come one after another.
 */
import { backoff } from '../../kernel/backoff.ts';
import { categoryOf, entityIdOf, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp, type WebhookId } from '../../kernel/ids.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { WaitingDeliveries, WaitingRow } from '../../ports/waiting-deliveries.ts';
import type { WaitingPushes } from '../../ports/waiting-pushes.ts';
import { type Pace, slotTime } from './delivery-budget.ts';
import { WEBHOOK_BUDGET_GROUP, WEBHOOK_ROOM_LOOK_FIRST_MS, WEBHOOK_ROOM_LOOK_LAST_MS } from './limits.ts';
import type { NotifyOptions } from './notify-webhooks.ts';
import type { PendingRoom } from './pending-delivery-limit.ts';

/**
 * Deliveries of one account that are still to be made, in rows for a push and a webhook, where a row counts as the
 * second number at least. With this many a further push is one row, and listed when there is room.
 */
export const WEBHOOK_WAITING_DELIVERIES_MAX = 1_000_000;
export const WEBHOOK_ROW_LEAST = 100;

/** The rows of the deliveries that an expansion left; after `aborted` the push is to be expanded again. */
export type Expanded = readonly WaitingRow[] | 'aborted';

export type Expand = (
  event: RecordedEvent,
  from: Pick<NotifyOptions, 'rows' | 'rowsOnly' | 'refsDone'>,
) => Promise<Expanded>;

export interface StalledOptions {
  readonly waiting: WaitingDeliveries;
  readonly pushes: WaitingPushes;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly room: Pick<PendingRoom, 'mayResume'>;
  readonly paceOf: (account: AccountId) => Promise<Pace | null | 'closed'>;
  /** Requests the deliveries of a push as far as there is room. */
  readonly expand: Expand;
  /** Stores rows of the push, new or known. */
  readonly add: (event: RecordedEvent, rows: readonly WaitingRow[]) => Promise<void>;
  /** Resolves when the lists of deliveries show what was requested before, or cannot. */
  readonly listed: () => Promise<void>;
}

/** Rows of one account that are read at a time. Internal: the rest is read later. */
const ROWS_MAX = 20;
/** So that no push is read more often while its deliveries fall due in small groups. */
const LOOK_SPAN_MS = 30_000;

interface Look {
  readonly spans: ReturnType<typeof newSpans>;
  /** Not before this time of the machine's uptime, and of its clock. */
  atMs: number;
  at: Timestamp | null;
}

function newSpans() {
  return backoff(WEBHOOK_ROOM_LOOK_FIRST_MS, WEBHOOK_ROOM_LOOK_LAST_MS);
}

export class StalledAccounts {
  readonly #options: StalledOptions;
  readonly #looks = new Map<AccountId, Look>();

  constructor(options: StalledOptions) {
    this.#options = options;
  }

  /** Reads which accounts were stalled when the last process ended. */
  async load(): Promise<void> {
    const { waiting, pushes } = this.#options;
    for (const account of [...(await waiting.accounts()), ...(await pushes.accounts())])
      this.#looks.set(account, { spans: newSpans(), atMs: 0, at: null });
  }

  has(account: AccountId): boolean {
    return this.#looks.has(account);
  }

  /** Stores what an expansion of the push left; the account is stalled from then on. May be repeated. */
  async hold(account: AccountId, event: RecordedEvent, rows: readonly WaitingRow[]): Promise<void> {
    await this.#options.add(event, rows);
    if (!this.#looks.has(account)) this.#lookLater(account, newSpans());
  }

  /** Returns whether the account has enough rows that a further push of it becomes one row. */
  async isFull(account: AccountId): Promise<boolean> {
    const { waiting, pushes } = this.#options;
    if ((await pushes.earliest(account, 1)).length > 0) return true;
    return (await waiting.load(account, WEBHOOK_ROW_LEAST)) >= WEBHOOK_WAITING_DELIVERIES_MAX;
  }

  /** Stores a push as one row. May be repeated. */
  async put(account: AccountId, { id, stream, revision, position }: RecordedEvent): Promise<void> {
    await this.#options.pushes.put({ id, account, stream, revision, position, refsDone: 0 });
    if (!this.#looks.has(account)) this.#lookLater(account, newSpans());
  }

  async forget(account: AccountId): Promise<void> {
    await this.#options.waiting.forgetAccount(account);
    await this.#options.pushes.forgetAccount(account);
    this.#looks.delete(account);
  }

  async forgetWebhook(account: AccountId, webhook: WebhookId): Promise<void> {
    if (this.#looks.has(account)) await this.#options.waiting.forgetWebhook(account, webhook);
  }

  /** Returns the accounts that are to be resumed now, if there is room. */
  dueToResume(): readonly AccountId[] {
    const { clock } = this.#options;
    const [nowMs, now] = [clock.monotonicMs(), clock.now()];
    return [...this.#looks]
      .filter(([, { atMs, at }]) => atMs <= nowMs && (at === null || at <= now))
      .map(([account]) => account);
  }

  /** Expands the pushes that wait while there is room. The account is not stalled any more when none is left. */
  async resume(account: AccountId): Promise<void> {
    const { waiting, pushes, room } = this.#options;
    const spans = this.#looks.get(account)?.spans;
    if (spans === undefined) return;
    // Set before anything fails: a failure waits as well.
    this.#lookLater(account, spans);
    if (!(await room.mayResume(account))) return;
    do {
      if ((await this.#split(account)) === 'aborted') return;
      for (let rows = await waiting.earliest(account); rows.length > 0; rows = await waiting.earliest(account)) {
        if (await this.#waitsForHour(account, 0)) return;
        const outcome = await this.#expandRows(rows);
        if (outcome === 'aborted') return;
        if (outcome === 'moved') this.#lookLater(account, newSpans());
        if (outcome !== 'done') {
          // What the next delivery needs may be more than what is left of this hour.
          if (!(await this.#waitsForHour(account, 0)) && outcome === 'same') {
            await this.#waitsForHour(account, WEBHOOK_BUDGET_GROUP);
          }
          return;
        }
      }
    } while ((await pushes.earliest(account, 1)).length > 0);
    this.#looks.delete(account);
  }

  /** Makes rows for each webhook of the pushes that wait as one row, as long as there is room for them. */
  async #split(account: AccountId): Promise<'aborted' | null> {
    const { waiting, pushes, expand } = this.#options;
    for (;;) {
      const found = await pushes.earliest(account, ROWS_MAX);
      if (found.length === 0) return null;
      for (const push of found) {
        if ((await waiting.load(account, WEBHOOK_ROW_LEAST)) >= WEBHOOK_WAITING_DELIVERIES_MAX) return null;
        const event = await this.#eventOf(push.id, push);
        if (event !== null) {
          const rows = await expand(event, { rows: null, rowsOnly: true, refsDone: push.refsDone });
          if (rows === 'aborted') return rows;
          await this.hold(account, event, rows);
        }
        await pushes.remove(push.id);
      }
    }
  }

  /** Expands the push of these rows, and moves them on. */
  async #expandRows(rows: readonly WaitingRow[]): Promise<'aborted' | 'done' | 'moved' | 'same'> {
    const { waiting, expand, listed } = this.#options;
    const [first] = rows;
    if (first === undefined) return 'done';
    // Another log may have been put in the place of that of these rows.
    const event = await this.#eventOf(first.push, first);
    const passed = new Map(rows.map((row) => [row.webhook, row.passed]));
    const left = event === null ? [] : await expand(event, { rows: passed, rowsOnly: false, refsDone: 0 });
    if (left === 'aborted') return left;
    const leftOf = new Map(left.map((row) => [row.webhook, row]));
    const moved = rows.filter(({ webhook, passed: before }) => leftOf.get(webhook)?.passed !== before);
    if (moved.length > 0) await listed();
    for (const { push, webhook, passed: before } of moved) {
      await waiting.moveOn(push, webhook, leftOf.get(webhook) ?? { passed: before, waiting: 0 });
    }
    if (left.length === 0) return 'done';
    return moved.length > 0 ? 'moved' : 'same';
  }

  async #eventOf(
    id: RecordedEvent['id'],
    { stream, revision }: Pick<WaitingRow, 'stream' | 'revision'>,
  ): Promise<RecordedEvent | null> {
    const name = streamName(categoryOf(stream), entityIdOf(stream));
    const [event] = await this.#options.events.readStream(name, { direction: 'forwards', from: revision, limit: 1 });
    return event?.id === id ? event : null;
  }

  /** Returns whether the account sends nothing more now, and looks at it when it does, behind this many deliveries. */
  async #waitsForHour(account: AccountId, behind: number): Promise<boolean> {
    const { clock, paceOf } = this.#options;
    const pace = await paceOf(account);
    const now = clock.now();
    if (pace === null) return false;
    if (pace === 'closed') {
      this.#looks.set(account, { spans: newSpans(), atMs: 0, at: plusMs(now, WEBHOOK_ROOM_LOOK_LAST_MS) });
      return true;
    }
    const next = slotTime(pace, behind);
    if (next <= now) return false;
    const soon = plusMs(now, LOOK_SPAN_MS);
    const nextHour = slotTime({ ...pace, taken: pace.perHour }, 0);
    const earliest = nextHour < soon ? nextHour : soon;
    this.#looks.set(account, { spans: newSpans(), atMs: 0, at: next > earliest ? next : earliest });
    return true;
  }

  #lookLater(account: AccountId, spans: Look['spans']): void {
    this.#looks.set(account, { spans, atMs: this.#options.clock.monotonicMs() + spans.next(), at: null });
  }
}
