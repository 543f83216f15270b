/**
 * Accounts that have no room for more deliveries, and their pushes, which wait in rows until there is.
 *
 * Must stay true: while an account is stalled each of its pushes becomes a row, so that the pushes go on in their order;
 * the log is read on meanwhile for everybody else. All calls for one account come one after another.
 */
import { backoff } from '../../kernel/backoff.ts';
import { categoryOf, entityIdOf, type RecordedEvent, streamName } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { WEBHOOK_ROOM_LOOK_FIRST_MS, WEBHOOK_ROOM_LOOK_LAST_MS } from '../../kernel/limits.ts';
import type { Clock } from '../../ports/clock.ts';
import type { EventStore } from '../../ports/event-store.ts';
import type { WaitingPush, WaitingPushes } from '../../ports/waiting-pushes.ts';
import type { PendingRoom } from './pending-room.ts';

/** How many refs of a push have all their deliveries; null: the push is done. */
export type Expanded = { readonly refsDone: number } | null;

export interface StalledOptions {
  readonly waiting: WaitingPushes;
  readonly events: Pick<EventStore, 'readStream'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly room: Pick<PendingRoom, 'mayResume'>;
  /** Requests the deliveries of a push from a ref on. Resolves null also when the signal was aborted, and then again. */
  readonly expand: (event: RecordedEvent, refsDone: number) => Promise<Expanded | 'aborted'>;
}

/** Rows of one account that are read at a time. */
const ROWS_MAX = 20;

interface Look {
  readonly spans: ReturnType<typeof newSpans>;
  atMs: number;
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
    for (const account of await this.#options.waiting.accounts())
      this.#looks.set(account, { spans: newSpans(), atMs: 0 });
  }

  has(account: AccountId): boolean {
    return this.#looks.has(account);
  }

  /** Stores a push of a stalled account; the account is stalled from then on. May be repeated. */
  async put(account: AccountId, { id, stream, revision, position }: RecordedEvent, refsDone: number): Promise<void> {
    await this.#options.waiting.put({ id, account, stream, revision, position, refsDone });
    if (!this.#looks.has(account)) this.#lookLater(account, newSpans());
  }

  async forget(account: AccountId): Promise<void> {
    await this.#options.waiting.forgetAccount(account);
    this.#looks.delete(account);
  }

  /** Returns the accounts that are to be resumed now, if there is room. */
  dueToResume(): readonly AccountId[] {
    const now = this.#options.clock.monotonicMs();
    return [...this.#looks].filter(([, { atMs }]) => atMs <= now).map(([account]) => account);
  }

  /** Expands the pushes that wait while there is room. The account is not stalled any more when none is left. */
  async resume(account: AccountId): Promise<void> {
    const { waiting, room } = this.#options;
    const spans = this.#looks.get(account)?.spans;
    if (spans === undefined) return;
    // Set before anything fails: a failure waits as well.
    this.#lookLater(account, spans);
    if (!(await room.mayResume(account))) return;
    for (let rows = await waiting.earliest(account, ROWS_MAX); ; rows = await waiting.earliest(account, ROWS_MAX)) {
      if (rows.length === 0) break;
      for (const row of rows) {
        const outcome = await this.#expandRow(row);
        if (outcome === 'aborted') return;
        if (outcome === null) {
          await waiting.remove(row.id);
          continue;
        }
        if (outcome.refsDone > row.refsDone) {
          await waiting.put({ ...row, refsDone: outcome.refsDone });
          this.#lookLater(account, newSpans());
        }
        return;
      }
    }
    this.#looks.delete(account);
  }

  async #expandRow({ id, stream, revision, refsDone }: WaitingPush): Promise<Expanded | 'aborted'> {
    const name = streamName(categoryOf(stream), entityIdOf(stream));
    const [event] = await this.#options.events.readStream(name, { direction: 'forwards', from: revision, limit: 1 });
    // Another log was put in the place of that of this row.
    if (event?.id !== id) return null;
    return this.#options.expand(event, refsDone);
  }

  #lookLater(account: AccountId, spans: Look['spans']): void {
    this.#looks.set(account, { spans, atMs: this.#options.clock.monotonicMs() + spans.next() });
  }
}
