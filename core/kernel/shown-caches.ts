/**
 * What each cache of this process takes, its bound, and how often it had what was looked for: for the metrics.
 *
 * Invariants: a look costs one addition. Caches are known by a name that the code writes; those of one name are shown
 * together, so there are as many figures as names, and hits and misses never fall. A cache that is not used any more
 * is not kept for its figures. They are those of the process, as its memory is: no layer hands them through.
 */

/**
 * What a cache is bounded by: bytes of memory, bytes on disk, or a number, of its entries or of what these hold.
 */
export type CacheUnit = 'memory' | 'disk' | 'entries';

export interface CacheSize {
  readonly taken: number;
  readonly max: number;
}

/** Looks that found something, and those that did not. */
export interface CacheLooks {
  hits: number;
  misses: number;
}

export interface ShownCache extends CacheSize, Readonly<CacheLooks> {
  readonly unit: CacheUnit;
}

interface Named {
  readonly unit: CacheUnit;
  readonly looks: CacheLooks;
  sizes: (() => CacheSize | null)[];
}

const byName = new Map<string, Named>();

/**
 * Shows a cache for as long as it lives. `sizeOf` must stand where no cache is made: a function that is made beside one
 * holds it, and so would this file. Returns the looks, which the cache counts.
 */
export function showCache<Cache extends object>(
  name: string,
  unit: CacheUnit,
  cache: Cache,
  sizeOf: (cache: Cache) => CacheSize,
): CacheLooks {
  const named = byName.get(name) ?? { unit, looks: { hits: 0, misses: 0 }, sizes: [] };
  if (named.unit !== unit) throw new TypeError(`The cache ${name} is bounded in two ways`);
  const weak = new WeakRef(cache);
  const read = (): CacheSize | null => {
    const living = weak.deref();
    return living === undefined ? null : sizeOf(living);
  };
  named.sizes = [...named.sizes.filter((size) => size() !== null), read];
  byName.set(name, named);
  return named.looks;
}

/** The size that a cache changes itself, for `showCache` in the place of the cache. */
export interface OwnSize extends CacheSize {
  taken: number;
}

export function ownSize(size: OwnSize): CacheSize {
  return size;
}

/** Returns all caches that this process has had, by name. */
export function shownCaches(): ReadonlyMap<string, ShownCache> {
  return new Map([...byName].map(([name, named]) => [name, { unit: named.unit, ...named.looks, ...sumOf(named) }]));
}

function sumOf({ sizes }: Named): CacheSize {
  return sizes.reduce(
    (sum, size) => {
      const { taken, max } = size() ?? { taken: 0, max: 0 };
      return { taken: sum.taken + taken, max: sum.max + max };
    },
    { taken: 0, max: 0 },
  );
}

/** What this file needs of a cache with a bound, in the form of lru-cache. A bound of 0 bounds nothing. */
interface BoundedCache<Key, Value> extends Bounded {
  get(key: Key): Value | undefined;
  set(key: Key, value: NoInfer<Value>): unknown;
  has(key: Key): boolean;
  delete(key: Key): boolean;
  keys(): Iterable<Key>;
}

interface Bounded {
  readonly size: number;
  readonly max: number;
  readonly calculatedSize: number;
  readonly maxSize: number;
}

export interface CountedCache<Key, Value> {
  get(key: Key): Value | undefined;
  set(key: Key, value: Value): void;
  /** Is no look: neither hit nor miss, and the entry is not used by it. */
  has(key: Key): boolean;
  delete(key: Key): void;
  keys(): Iterable<Key>;
  /** The sizes of all entries together, if the cache has a bound of sizes; else 0. */
  readonly sizeTaken: number;
}

/** The bound of an LRU cache by its entries. With `max` it would reserve the memory for all of them when it is made. */
export function entriesAtMost(entriesMax: number): {
  readonly maxSize: number;
  readonly sizeCalculation: () => number;
} {
  return { maxSize: entriesMax, sizeCalculation: () => 1 };
}

/** Shows a cache, and counts the looks into it. */
export function countedCache<Key, Value>(
  name: string,
  unit: CacheUnit,
  cache: BoundedCache<Key, Value>,
): CountedCache<Key, Value> {
  return new Counted(cache, showCache(name, unit, cache, unit === 'entries' ? countOf : weightOf));
}

function weightOf({ calculatedSize, maxSize }: Bounded): CacheSize {
  return { taken: calculatedSize, max: maxSize };
}

function countOf(cache: Bounded): CacheSize {
  return cache.max === 0 ? weightOf(cache) : { taken: cache.size, max: cache.max };
}

class Counted<Key, Value> implements CountedCache<Key, Value> {
  readonly #cache: BoundedCache<Key, Value>;
  readonly #looks: CacheLooks;

  constructor(cache: BoundedCache<Key, Value>, looks: CacheLooks) {
    this.#cache = cache;
    this.#looks = looks;
  }

  get(key: Key): Value | undefined {
    const found = this.#cache.get(key);
    if (found === undefined) this.#looks.misses += 1;
    else this.#looks.hits += 1;
    return found;
  }

  set(key: Key, value: Value): void {
    this.#cache.set(key, value);
  }

  has(key: Key): boolean {
    return this.#cache.has(key);
  }

  delete(key: Key): void {
    this.#cache.delete(key);
  }

  keys(): Iterable<Key> {
    return this.#cache.keys();
  }

  get sizeTaken(): number {
    return this.#cache.calculatedSize;
  }
}
