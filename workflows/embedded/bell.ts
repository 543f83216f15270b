/**
 * Tells one waiter that something happened, however often it did.
 *
 * Must stay true: a ring between `next` and its awaiting is not lost.
 */
export class Bell {
  #ring: () => void = () => undefined;

  /** Resolves at the first ring after this call; a waiter asks anew for each. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.#ring = resolve;
    });
  }

  ring(): void {
    this.#ring();
  }
}
