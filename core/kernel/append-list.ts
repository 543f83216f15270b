/**
 * An immutable list that grows at its end: copies share one array as long as each is extended once.
 *
 * Must stay true: an instance shows the same `length` items for ever, although newer lists write behind them.
 */

/** What readers of a list need; arrays have it too. */
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
    // Another list already continued this one differently: the shared array is no longer ours to extend.
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
      // What follows belongs to newer lists, and may have come while this one was being read.
      if (left === 0) return;
      left -= 1;
      yield item;
    }
  }
}
