/**
 * Work that several requests wait for together.
 *
 * Invariants: work of a key runs once at a time; it is stopped when the last request that waits for it leaves.
 */
import { unlessAborted } from '../process/unless-aborted.ts';

interface Work<Result> {
  readonly result: Promise<Result>;
  readonly stop: AbortController;
  waiting: number;
}

export class SharedWork<Result> {
  readonly #running = new Map<string, Work<Result>>();

  /** Resolves with the result of the work of this key, which begins unless it is under way. */
  async join(key: string, signal: AbortSignal, make: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    signal.throwIfAborted();
    const work = this.#running.get(key) ?? this.#begin(key, make);
    work.waiting += 1;
    try {
      return await unlessAborted(signal, () => work.result);
    } finally {
      work.waiting -= 1;
      if (work.waiting === 0) {
        this.#forget(key, work);
        work.stop.abort(new Error('The last request that waited left'));
      }
    }
  }

  #begin(key: string, make: (signal: AbortSignal) => Promise<Result>): Work<Result> {
    const stop = new AbortController();
    const work: Work<Result> = { result: make(stop.signal), stop, waiting: 0 };
    this.#running.set(key, work);
    const forget = () => this.#forget(key, work);
    work.result.then(forget, forget);
    return work;
  }

  /** Does nothing when other work of the same key has begun since. */
  #forget(key: string, work: Work<Result>): void {
    if (this.#running.get(key) === work) this.#running.delete(key);
  }
}
