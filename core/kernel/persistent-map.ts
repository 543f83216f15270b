/**
 * An immutable map of which changed copies are cheap: a shared base, and a small overlay of changes.
 *
 * Invariants: no operation changes an existing instance. So a request may read a state across awaits, while later
 * events make newer states.
 */

/**
 * The overlay is merged into a new base when it holds more entries than this plus an eighth of the base's. Internal:
 * both ways hold the same entries.
 */
const OVERLAY_ENTRIES_MIN = 64;

/** Returns the weight of an entry, e.g. the bytes of memory that it takes. */
export type Weigh<Key, Value> = (key: Key, value: Value) => number;

interface Parts<Key, Value> {
  readonly base: ReadonlyMap<Key, Value>;
  readonly overlay: ReadonlyMap<Key, Value | undefined>;
  readonly weigh: Weigh<Key, Value>;
  readonly size: number;
  readonly weight: number;
}

/** Values are never undefined: in a change, `undefined` removes a key. */
export class PersistentMap<Key, Value extends {} | null> {
  readonly size: number;
  /** The sum of the entries' weights; each weighs 1 unless `from` received another function. */
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

  /** `weigh` is called when an entry is added and when it is removed; it must return the same weight both times. */
  static from<Key, Value extends {} | null>(
    entries: Iterable<readonly [Key, Value]>,
    weigh: Weigh<Key, Value> = () => 1,
  ): PersistentMap<Key, Value> {
    const base = new Map(entries);
    let weight = 0;
    for (const [key, value] of base) weight += weigh(key, value);
    return new PersistentMap({ base, overlay: new Map<Key, Value | undefined>(), weigh, size: base.size, weight });
  }

  /** Makes a map entry by entry, so that the caller can leave the event loop to others between them. */
  static inParts<Key, Value extends {} | null>(
    weigh: Weigh<Key, Value>,
  ): { add(key: Key, value: Value): void; map(): PersistentMap<Key, Value> } {
    const base = new Map<Key, Value>();
    let [weight, added, isMade] = [0, 0, false];
    return {
      add(key, value) {
        if (isMade) throw new TypeError('The map is made, and never changes');
        base.set(key, value);
        weight += weigh(key, value);
        added += 1;
      },
      // Not a copy, which would take a long turn of the event loop.
      map() {
        if (base.size !== added) throw new TypeError('A key came twice');
        isMade = true;
        return new PersistentMap({ base, overlay: new Map<Key, Value | undefined>(), weigh, size: base.size, weight });
      },
    };
  }

  get(key: Key): Value | undefined {
    return this.#overlay.has(key) ? this.#overlay.get(key) : this.#base.get(key);
  }

  has(key: Key): boolean {
    return this.get(key) !== undefined;
  }

  /** Returns a copy with the changes, made in order; `undefined` removes a key. */
  with(changes: readonly (readonly [Key, Value | undefined])[]): PersistentMap<Key, Value> {
    if (changes.length > this.#overlayMax()) return this.#rebased(changes);
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
    const changed = new PersistentMap({ base: this.#base, overlay, weigh, size, weight });
    return overlay.size <= this.#overlayMax() ? changed : changed.#rebased([]);
  }

  #overlayMax(): number {
    return OVERLAY_ENTRIES_MIN + this.#base.size / 8;
  }

  /** Does what `with` does, with a base of its own: one copy, where many changes would first fill an overlay. */
  #rebased(changes: readonly (readonly [Key, Value | undefined])[]): PersistentMap<Key, Value> {
    const base = new Map(this.#base);
    const set = (key: Key, value: Value | undefined): void => {
      if (value === undefined) base.delete(key);
      else base.set(key, value);
    };
    for (const [key, value] of this.#overlay) set(key, value);
    const weigh = this.#weigh;
    let { weight } = this;
    for (const [key, value] of changes) {
      const before = base.get(key);
      if (before !== undefined) weight -= weigh(key, before);
      if (value !== undefined) weight += weigh(key, value);
      set(key, value);
    }
    return new PersistentMap({ base, overlay: new Map<Key, Value | undefined>(), weigh, size: base.size, weight });
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
