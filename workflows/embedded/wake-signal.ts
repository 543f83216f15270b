/**
 * Wakes one waiter; several signals before it waits again count as one.
 *
 * Invariants: a signal between the call of `next` and the await of its promise is not lost.
 */
export class WakeSignal {
  #resolve: () => void = () => undefined;

  /** Resolves at the first signal after this call; the waiter calls it again for each wait. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  signal(): void {
    this.#resolve();
  }
}
