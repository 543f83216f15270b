/**
 * How far the log is followed: the mark up to which webhooks were notified of every push, and of which pushes beyond
 * it.
 *
 * Invariants: the saved mark is before the oldest event that is not done, and a restart from it begins inside no
 * append. One account's push that is not done keeps the mark back, and only that account's from counting as done.
 */
import type { LogPosition } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { NotifiedPushes } from '../../ports/notified-pushes.ts';
import type { ReadMark } from '../../ports/read-mark.ts';

/**
 * Pushes whose webhooks are being notified at the same time; at this limit the log is read no further. Internal:
 * further pushes wait in the log.
 */
const WEBHOOK_PUSHES_AT_ONCE_MAX = 1_000;

/** An event of the log, and whose deliveries it makes. */
export interface FollowedEvent {
  readonly position: LogPosition;
  /** Null if it makes none. */
  readonly account: AccountId | null;
  /** Null if a restart must not begin right after this event. */
  readonly mark: ReadMark | null;
}

interface Begun extends FollowedEvent {
  done: boolean;
}

interface FollowProgressOptions {
  readonly save: (mark: ReadMark) => Promise<void>;
  readonly saveNotified: (notified: NotifiedPushes) => Promise<void>;
  /** Waits between two saves. */
  readonly pause: () => Promise<void>;
  readonly onFault: (cause: unknown) => void;
  /** After it is aborted, a failed save is not retried. */
  readonly signal: AbortSignal;
}

/** Tracks the events that are under way, in order, and saves the mark up to which all events are done. */
export class FollowProgress {
  readonly #options: FollowProgressOptions;
  #begun: Begun[] = [];
  #reached: ReadMark | null = null;
  /** The position of the last event that was begun. */
  #last: LogPosition | null = null;
  /** The same; null if nothing was done since it was saved. */
  #notifiedTo: LogPosition | null = null;
  #saving: Promise<void> | null = null;
  #wake: (() => void)[] = [];

  constructor(options: FollowProgressOptions) {
    this.#options = options;
  }

  /** Adds an event. The caller calls the returned function when the event is done. */
  begin(event: FollowedEvent): () => void {
    const begun: Begun = { ...event, done: false };
    this.#begun.push(begun);
    this.#last = event.position;
    return () => {
      begun.done = true;
      this.#advance();
      this.#notifiedTo = this.#last;
      this.#saving ??= this.#saveAll();
    };
  }

  /** Resolves when another event may begin. */
  async room(signal: AbortSignal): Promise<void> {
    while (this.#begun.length >= WEBHOOK_PUSHES_AT_ONCE_MAX && !signal.aborted) {
      await new Promise<void>((resolve) => {
        const wake = (): void => {
          signal.removeEventListener('abort', wake);
          resolve();
        };
        this.#wake.push(wake);
        signal.addEventListener('abort', wake, { once: true });
      });
    }
  }

  async saved(): Promise<void> {
    while (this.#saving !== null) await this.#saving;
  }

  #advance(): void {
    const undone = this.#begun.findIndex(({ done }) => !done);
    const count = undone === -1 ? this.#begun.length : undone;
    if (count === 0) return;
    const done = this.#begun.slice(0, count);
    this.#begun = this.#begun.slice(count);
    for (const wake of this.#wake.splice(0)) wake();
    const reached = done.findLast(({ mark }) => mark !== null)?.mark ?? null;
    if (reached !== null) this.#reached = reached;
  }

  /** The first of each account is its oldest, as they were begun in order. */
  #undone(): NotifiedPushes['undone'] {
    const undone = new Map<AccountId, LogPosition>();
    for (const { account, position, done } of this.#begun) {
      if (!done && account !== null && !undone.has(account)) undone.set(account, position);
    }
    return undone;
  }

  async #saveAll(): Promise<void> {
    const { save, saveNotified, pause, onFault, signal } = this.#options;
    while (this.#reached !== null || this.#notifiedTo !== null) {
      const mark = this.#reached;
      const notifiedTo = this.#notifiedTo;
      this.#reached = null;
      this.#notifiedTo = null;
      try {
        if (notifiedTo !== null) await saveNotified({ reached: notifiedTo, undone: this.#undone() });
        if (mark !== null) await save(mark);
      } catch (error) {
        onFault(error);
        // A later mark includes this one. If none is saved, a restart processes the events again, which is idempotent.
        if (!signal.aborted) this.#reached ??= mark;
        if (!signal.aborted) this.#notifiedTo ??= notifiedTo;
      }
      await pause();
    }
    this.#saving = null;
  }
}
