/** Bodies that are read again from their first byte, such as those of a request that must be sent once more. */

class Body<Item> implements AsyncIterable<Item> {
  readonly #open: () => AsyncIterable<Item>;

  constructor(open: () => AsyncIterable<Item>) {
    this.#open = open;
  }

  [Symbol.asyncIterator](): AsyncIterator<Item> {
    return this.#open()[Symbol.asyncIterator]();
  }
}

/** Each reading calls `open`. */
export function readAgain<Item>(open: () => AsyncIterable<Item>): AsyncIterable<Item> {
  return new Body(open);
}

/** Whether `readAgain` made it. A generator or a stream is read once only. */
export function canReadAgain(items: AsyncIterable<unknown>): boolean {
  return items instanceof Body;
}
