/**
 * Work that no request waits for, such as merging packs: one piece at a time, begun after a quiet moment. While git
 * works for a request, the processes of such work are stopped (SIGSTOP), so that the request has the processors.
 *
 * Invariants: each process, and the beginning of each piece, is held back for a bounded time in all, so that the work
 * also ends on a node that is never quiet. Pieces run in the order in which they were added; one that fails stops no
 * later one.
 */

/** How long no request has needed git before background work begins, or goes on. */
const QUIET_MS = 100;
/**
 * How long one process, or the beginning of one piece, is held back in all. Internal: it is the pace of background
 * work.
 */
const HELD_MS_MAX = 10_000;

/** A process of such work. */
export interface Pausable {
  pause(): void;
  resume(): void;
}

export interface BackgroundWorkOptions {
  readonly quietMs?: number;
  readonly heldMsMax?: number;
}

export class BackgroundWork {
  readonly #quietMs: number;
  readonly #heldMsMax: number;
  readonly #holds = new Set<Hold>();
  #last: Promise<void> = Promise.resolve();
  /** Processes that work for requests. */
  #requests = 0;
  /** Those who wait for the work to be done: then nothing is held back. */
  #hurrying = 0;
  #quietTimer: NodeJS.Timeout | undefined;
  #isQuiet = true;
  #isClosed = false;

  constructor({ quietMs = QUIET_MS, heldMsMax = HELD_MS_MAX }: BackgroundWorkOptions = {}) {
    this.#quietMs = quietMs;
    this.#heldMsMax = heldMsMax;
  }

  /** Adds a piece of work. Resolves or rejects as it does; resolves without it after `close`. */
  run(work: () => Promise<void>): Promise<void> {
    const result = this.#last.then(async () => {
      await this.#quietMoment();
      if (!this.#isClosed) await work();
    });
    this.#last = result.catch(() => undefined);
    return result;
  }

  /** Call it when git begins to work for a request; returns what to call at its end. */
  requestBegins(): () => void {
    this.#requests += 1;
    this.#isQuiet = false;
    clearTimeout(this.#quietTimer);
    this.#update();
    return () => {
      this.#requests -= 1;
      if (this.#requests > 0) return;
      clearTimeout(this.#quietTimer);
      this.#quietTimer = setTimeout(() => {
        this.#isQuiet = true;
        this.#update();
      }, this.#quietMs).unref();
    };
  }

  /** Call it when a process of such work was started; returns what to call at its end. */
  processBegins(process: Pausable): () => void {
    return this.#hold(
      () => process.pause(),
      () => process.resume(),
    );
  }

  /** Resolves when the work that was added so far is done, which is not held back until then. */
  async settled(): Promise<void> {
    this.#hurrying += 1;
    this.#update();
    await this.#last;
    this.#hurrying -= 1;
    this.#update();
  }

  /** From now on no piece of work begins. */
  close(): void {
    this.#isClosed = true;
  }

  async #quietMoment(): Promise<void> {
    const { promise: begun, resolve } = Promise.withResolvers<void>();
    const end = this.#hold(() => undefined, resolve);
    if (!this.#isHolding()) resolve();
    await begun;
    end();
  }

  #hold(pause: () => void, resume: () => void): () => void {
    const hold = new Hold(this.#heldMsMax, pause, resume);
    this.#holds.add(hold);
    hold.set(this.#isHolding());
    return () => {
      this.#holds.delete(hold);
      hold.set(false);
    };
  }

  #isHolding(): boolean {
    return !this.#isQuiet && this.#hurrying === 0;
  }

  #update(): void {
    for (const hold of this.#holds) hold.set(this.#isHolding());
  }
}

/** Something that is held back again and again, for a bounded time in all. */
class Hold {
  readonly #pause: () => void;
  readonly #resume: () => void;
  #msLeft: number;
  #sinceMs: number | null = null;
  #timer: NodeJS.Timeout | undefined;

  constructor(msMax: number, pause: () => void, resume: () => void) {
    this.#msLeft = msMax;
    this.#pause = pause;
    this.#resume = resume;
  }

  set(isWanted: boolean): void {
    const isHeld = isWanted && this.#msLeft > 0;
    if (isHeld === (this.#sinceMs !== null)) return;
    clearTimeout(this.#timer);
    if (this.#sinceMs === null) {
      this.#sinceMs = performance.now();
      this.#timer = setTimeout(() => {
        this.#msLeft = 0;
        this.set(false);
      }, this.#msLeft).unref();
      this.#pause();
    } else {
      this.#msLeft -= performance.now() - this.#sinceMs;
      this.#sinceMs = null;
      this.#resume();
    }
  }
}
