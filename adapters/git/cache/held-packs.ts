/**
 * The packs of small pushes that a cached repository has in memory only. Mostly a compaction joins them before git
 * needs their files, so these are never written.
 *
 * Invariants: a pack is in memory until its files are whole, and git starts in the folder only after `write`, so it
 * finds every pack. What all repositories hold together is bounded. Nothing is lost with the process: the layer store
 * has every layer.
 */
import { rename, writeFile } from 'node:fs/promises';
import { type CacheLooks, type CacheSize, showCache } from '../../../core/kernel/shown-caches.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import type { PackBytes } from '../packs/joined-pack.ts';
import { inOwnMemory } from '../packs/own-memory.ts';
import type { WithDiskSpace } from './disk-space.ts';

/**
 * What a pack takes at least, with all that is known of it. Internal: it is a part of how the memory for packs is
 * counted.
 */
const PACK_BYTES_MIN = 4_096;
/** Packs that are written at the same time. */
const WRITTEN_AT_ONCE = 4;

export interface HeldMemoryOptions {
  readonly bytesMax: number;
  readonly withDiskSpace: WithDiskSpace;
  /** Called when the files are there, and the next process will not know it. */
  readonly onFault: (error: unknown) => void;
}

/** The memory that the repositories of a cache share. */
export class HeldMemory {
  readonly options: HeldMemoryOptions;
  looks: CacheLooks = { hits: 0, misses: 0 };
  bytes = 0;

  constructor(options: HeldMemoryOptions) {
    this.options = options;
  }

  /** Shows it among the caches. Returns itself. */
  shown(): this {
    this.looks = showCache('git_held_packs', 'memory', this, sizeOfMemory);
    return this;
  }

  fits(bytes: PackBytes): boolean {
    return this.bytes + weightOf(bytes) <= this.options.bytesMax;
  }
}

function sizeOfMemory({ bytes, options }: HeldMemory): CacheSize {
  return { taken: bytes, max: options.bytesMax };
}

/** For a folder of work that ends soon, with bytes that a repository of the cache holds too. */
export function scratchMemory(): HeldMemory {
  return new HeldMemory({ bytesMax: Infinity, withDiskSpace: (_bytes, work) => work(), onFault: () => undefined });
}

export interface HeldPacksOptions {
  readonly memory: HeldMemory;
  /** The path of a file of a pack, without its extension. */
  readonly pathOf: (pack: string) => string;
}

interface HeldPack<Layer> {
  readonly bytes: PackBytes;
  /** Two layers may hold the same pack. */
  readonly layers: Layer[];
  writing: Promise<void> | null;
}

export class HeldPacks<Layer> {
  readonly #options: HeldPacksOptions;
  /** By the packs' checksums, hex, in the order in which they came. */
  readonly #packs = new Map<string, HeldPack<Layer>>();
  /** Layers of packs that were written, until a call of `write` returns them. */
  readonly #written: Layer[] = [];

  constructor(options: HeldPacksOptions) {
    this.#options = options;
  }

  get memory(): HeldMemory {
    return this.#options.memory;
  }

  get count(): number {
    return this.#packs.size;
  }

  /** The bytes of a pack; null if it is not held, or no more since its files are there. */
  get(pack: string): PackBytes | null {
    const held = this.#packs.get(pack);
    if (held === undefined) {
      this.memory.looks.misses += 1;
      return null;
    }
    this.memory.looks.hits += 1;
    return held.bytes;
  }

  add(pack: string, bytes: PackBytes, layer: Layer): void {
    const held = this.#packs.get(pack);
    if (held !== undefined) {
      held.layers.push(layer);
      return;
    }
    // A push must not keep the memory of the whole request.
    const own = { pack: inOwnMemory(bytes.pack), idx: inOwnMemory(bytes.idx) };
    this.#packs.set(pack, { bytes: own, layers: [layer], writing: null });
    this.memory.bytes += weightOf(own);
  }

  /**
   * Writes the files of all packs that are held now. Resolves with the layers of packs that were written since the last
   * call. Rejects with an ObjectDatabaseError, and what was not written stays in memory. The caller has a lease on the
   * folder.
   */
  async write(): Promise<readonly Layer[]> {
    const names = [...this.#packs.keys()];
    for (let start = 0; start < names.length; start += WRITTEN_AT_ONCE) {
      const ended = await Promise.allSettled(names.slice(start, start + WRITTEN_AT_ONCE).map(this.#writeOnce));
      for (const result of ended) if (result.status === 'rejected') throw asDatabaseError(result.reason);
    }
    return this.#written.splice(0);
  }

  readonly #writeOnce = async (name: string): Promise<void> => {
    const held = this.#packs.get(name);
    if (held === undefined) return;
    held.writing ??= this.#write(name, held).finally(() => {
      held.writing = null;
    });
    await held.writing;
  };

  /** For a folder that is removed. */
  clear(): void {
    for (const name of this.#packs.keys()) this.#forget(name);
  }

  async #write(name: string, { bytes, layers }: HeldPack<Layer>): Promise<void> {
    const path = this.#options.pathOf(name);
    await this.memory.options.withDiskSpace(bytes.pack.length + bytes.idx.length, () => writePackFiles(path, bytes));
    this.#written.push(...layers);
    this.#forget(name);
  }

  #forget(name: string): void {
    const held = this.#packs.get(name);
    if (held !== undefined && this.#packs.delete(name)) this.memory.bytes -= weightOf(held.bytes);
  }
}

/**
 * Writes a pack and its index at a path without extension, each under another name first: git sees whole files only.
 */
export async function writePackFiles(path: string, bytes: PackBytes): Promise<void> {
  const unfinished = `${path}.unfinished-`;
  const write = (extension: keyof PackBytes) =>
    writeFile(`${unfinished}${extension}`, bytes[extension], { mode: 0o640 });
  await Promise.all([write('pack'), write('idx')]);
  // The index last: git finds packs by their index.
  for (const extension of ['pack', 'idx'] as const) await rename(`${unfinished}${extension}`, `${path}.${extension}`);
}

function weightOf({ pack, idx }: PackBytes): number {
  return PACK_BYTES_MIN + pack.length + idx.length;
}

export function asDatabaseError(cause: unknown): ObjectDatabaseError {
  if (cause instanceof ObjectDatabaseError) return cause;
  const message = cause instanceof Error ? cause.message : String(cause);
  return new ObjectDatabaseError('object-database-unavailable', message, { cause });
}
