/**
 * How far the log is followed: the mark up to which webhooks were notified of every push.
 *
 * Must stay true: the saved mark is before the oldest event that is not done, and a restart from it begins inside no append.
 */
import { WEBHOOK_PUSHES_AT_ONCE_MAX } from '../../kernel/limits.ts';
import type { ReadMark } from '../../ports/read-mark.ts';

interface Begun {
  /** Null if a restart must not begin right after this event. */
  readonly mark: ReadMark | null;
  done: boolean;
}

interface FollowProgressOptions {
  readonly save: (mark: ReadMark) => Promise<void>;
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
  #saving: Promise<void> | null = null;
  #wake: (() => void)[] = [];

  constructor(options: FollowProgressOptions) {
    this.#options = options;
  }

  /** Adds an event. The caller calls the returned function when the event is done. */
  begin(mark: ReadMark | null): () => void {
    const begun: Begun = { mark, done: false };
    this.#begun.push(begun);
    return () => {
      begun.done = true;
      this.#advance();
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
    if (reached === null) return;
    this.#reached = reached;
    this.#saving ??= this.#saveAll();
  }

  async #saveAll(): Promise<void> {
    const { save, pause, onFault, signal } = this.#options;
    while (this.#reached !== null) {
      const mark = this.#reached;
      this.#reached = null;
      try {
        await save(mark);
      } catch (error) {
        onFault(error);
        // A later mark includes this one. If none is saved, a restart processes the events again, which is idempotent.
        if (!signal.aborted) this.#reached ??= mark;
      }
      await pause();
    }
    this.#saving = null;
  }
}
