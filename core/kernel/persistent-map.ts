/**
 * An immutable map whose changed copies are cheap: a shared base and a small overlay of changes.
 *
 * Must stay true: no operation changes an existing instance, so a state can be handed to a request and read
 * across awaits while later events make newer states.
 */

/** The overlay is merged into a new base once it holds more than this plus an eighth of the base. */
const OVERLAY_ENTRIES_MIN = 64;

/** What an entry counts for, e.g. the bytes of memory it takes. */
export type Weigh<Key, Value> = (key: Key, value: Value) => number;

interface Parts<Key, Value> {
  readonly base: ReadonlyMap<Key, Value>;
  readonly overlay: ReadonlyMap<Key, Value | undefined>;
  readonly weigh: Weigh<Key, Value>;
  readonly size: number;
  readonly weight: number;
}

/** Values are never undefined: that is how a change says that a key goes. */
export class PersistentMap<Key, Value extends {} | null> {
  readonly size: number;
  /** What all entries weigh together; each weighs 1 unless the map was made to weigh them otherwise. */
  readonly weight: number;
  readonly #base: ReadonlyMap<Key, Value>;
  readonly #overlay: ReadonlyMap<Key, Value | undefined>;
  readonly #weigh: Weigh<Key, Value>;

  private constructor(parts: Parts<Key, Value>) {
    this.#base = parts.base;
    this.#overlay = parts.overlay;
    this.#weigh = parts.weigh;
    this.size = parts.size;
    this.weight = parts.weight;
  }

  /** `weigh` is asked of an entry when it comes and when it goes, and answers alike. */
  static from<Key, Value extends {} | null>(
    entries: Iterable<readonly [Key, Value]>,
    weigh: Weigh<Key, Value> = () => 1,
  ): PersistentMap<Key, Value> {
    const base = new Map(entries);
    let weight = 0;
    for (const [key, value] of base) weight += weigh(key, value);
    return new PersistentMap({ base, overlay: new Map<Key, Value | undefined>(), weigh, size: base.size, weight });
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
    const weigh = this.#weigh;
    let { size, weight } = this;
    for (const [key, value] of changes) {
      const before = overlay.has(key) ? overlay.get(key) : this.#base.get(key);
      if (before !== undefined) {
        size -= 1;
        weight -= weigh(key, before);
      }
      if (value !== undefined) {
        size += 1;
        weight += weigh(key, value);
      }
      overlay.set(key, value);
    }
    if (overlay.size <= OVERLAY_ENTRIES_MIN + this.#base.size / 8) {
      return new PersistentMap({ base: this.#base, overlay, weigh, size, weight });
    }
    const base = new Map(this.#base);
    for (const [key, value] of overlay) {
      if (value === undefined) base.delete(key);
      else base.set(key, value);
    }
    return new PersistentMap({ base, overlay: new Map<Key, Value | undefined>(), weigh, size, weight });
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
