/**
 * An immutable map whose changed copies are cheap: a shared base and a small overlay of changes.
 *
 * Must stay true: no operation changes an existing instance, so a state can be handed to a request and read
 * across awaits while later events make newer states.
 */

/** The overlay is merged into a new base once it holds more than this plus an eighth of the base. */
const OVERLAY_ENTRIES_MIN = 64;

/** Values are never undefined: that is how a change says that a key goes. */
export class PersistentMap<Key, Value extends {} | null> {
  readonly size: number;
  readonly #base: ReadonlyMap<Key, Value>;
  readonly #overlay: ReadonlyMap<Key, Value | undefined>;

  private constructor(base: ReadonlyMap<Key, Value>, overlay: ReadonlyMap<Key, Value | undefined>, size: number) {
    this.#base = base;
    this.#overlay = overlay;
    this.size = size;
  }

  static from<Key, Value extends {} | null>(entries: Iterable<readonly [Key, Value]>): PersistentMap<Key, Value> {
    const base = new Map(entries);
    return new PersistentMap(base, new Map<Key, Value | undefined>(), base.size);
  }

  get(key: Key): Value | undefined {
    return this.#overlay.has(key) ? this.#overlay.get(key) : this.#base.get(key);
  }

  has(key: Key): boolean {
    return this.get(key) !== undefined;
  }

  /** A copy with the changes made in order; `undefined` removes a key. */
  with(changes: Iterable<readonly [Key, Value | undefined]>): PersistentMap<Key, Value> {
    const overlay = new Map(this.#overlay);
    let size = this.size;
    for (const [key, value] of changes) {
      const before = overlay.has(key) ? overlay.get(key) : this.#base.get(key);
      if (before === undefined && value !== undefined) size += 1;
      if (before !== undefined && value === undefined) size -= 1;
      overlay.set(key, value);
    }
    if (overlay.size <= OVERLAY_ENTRIES_MIN + this.#base.size / 8) return new PersistentMap(this.#base, overlay, size);
    const base = new Map(this.#base);
    for (const [key, value] of overlay) {
      if (value === undefined) base.delete(key);
      else base.set(key, value);
    }
    return new PersistentMap(base, new Map<Key, Value | undefined>(), size);
  }

  *entries(): IterableIterator<[Key, Value]> {
    for (const entry of this.#base) {
      if (!this.#overlay.has(entry[0])) yield entry;
    }
    for (const [key, value] of this.#overlay) {
      if (value !== undefined) yield [key, value];
    }
  }

  *keys(): IterableIterator<Key> {
    for (const [key] of this.entries()) yield key;
  }
}
