/**
 * An immutable list that grows at its end: lists share one array as long as each is extended only once.
 *
 * Invariants: an instance always holds the same `length` items, although newer lists write after them to the same
 * array.
 */

/** The read-only part of a list. Arrays implement it too. */
export interface Sequence<Item> extends Iterable<Item> {
  readonly length: number;
  /** A negative index counts from the end. */
  at(index: number): Item | undefined;
}

export class AppendList<Item> implements Sequence<Item> {
  readonly length: number;
  readonly #items: Item[];

  private constructor(items: Item[], length: number) {
    this.#items = items;
    this.length = length;
  }

  static from<Item>(items: Iterable<Item>): AppendList<Item> {
    const copy = [...items];
    return new AppendList(copy, copy.length);
  }

  append(item: Item): AppendList<Item> {
    // Copies the array if another list has already extended this one: its item is in the next place.
    const items = this.#items.length === this.length ? this.#items : this.#items.slice(0, this.length);
    items.push(item);
    return new AppendList(items, this.length + 1);
  }

  at(index: number): Item | undefined {
    const place = index < 0 ? this.length + index : index;
    return place < this.length ? this.#items[place] : undefined;
  }

  *[Symbol.iterator](): Iterator<Item> {
    let left = this.length;
    for (const item of this.#items) {
      // The items after these belong to newer lists; they may even be added during this iteration.
      if (left === 0) return;
      left -= 1;
      yield item;
    }
  }
}
