/**
 * The objects of repositories on this node: a cache filled from layers, one bare folder a repository.
 *
 * Must stay true: which layers are present stands in the manifest, never inferred from file names; a pack appears
 * by its index last; a repository is evicted whole and only while nobody holds a lease on it; after a restart of
 * the machine the cache begins anew, since nothing in it was ever synced.
 */
import { randomUUID } from 'node:crypto';
import { renameSync } from 'node:fs';
import { appendFile, link, mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import type { Log } from '../../core/ports/log.ts';
import { type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import { type CommittedObjects, type Layer, ObjectDatabaseError } from '../../core/ports/object-database.ts';
import { unpackLayer } from './layer-tar.ts';

/** Layers fetched at once for one repository. */
const FETCHES_MAX = 4;

export interface LayerCacheOptions {
  readonly directory: string;
  readonly layers: LayerStore;
  readonly cacheBytesMax: number;
  readonly log: Log;
}

/** A repository that stays while the lease is held. */
export interface Lease {
  /** A bare repository without refs. */
  readonly gitDir: string;
  readonly objectsDir: string;
  readonly packDir: string;
  /** Changes whenever the set of packs does. */
  readonly generation: () => number;
  release(): void;
}

interface Cached {
  readonly id: RepositoryId;
  readonly gitDir: string;
  /** Layer id to its pack's name. */
  readonly present: Map<string, string>;
  readonly filling: Map<string, Promise<void>>;
  /** What `ensure` found complete last: the same again costs nothing. */
  complete: { shrinkEpoch: number; count: number } | null;
  sizeBytes: number;
  leases: number;
  generation: number;
}

export interface LayerCache {
  /** Holds the repository and makes every layer of the set present. */
  lease(objects: CommittedObjects): Promise<Lease>;
  /** After a commit: takes a quarantine's files as the layer's. */
  install(repository: RepositoryId, layer: Layer, fromPackDir: string): Promise<void>;
  drop(repository: RepositoryId): Promise<void>;
  /** A new empty folder on the same file system, e.g. for a quarantine. */
  workshop(): Promise<string>;
  sizeBytes(): number;
}

export async function createLayerCache(options: LayerCacheOptions): Promise<LayerCache> {
  const repositoriesDir = path.join(options.directory, 'repositories');
  const workshopDir = path.join(options.directory, 'quarantine');
  await beginAnewAfterBoot(options.directory);
  // Nobody works here yet: what lies in the workshop was left by a process that died.
  await rm(workshopDir, { recursive: true, force: true });
  await mkdir(workshopDir, { recursive: true });
  await mkdir(repositoriesDir, { recursive: true });
  const cache = new Cache(options, repositoriesDir, workshopDir);
  await cache.readManifests();
  return cache;
}

/** A crash of the machine may have torn any file: the mark says in which life of the machine they were written. */
async function beginAnewAfterBoot(directory: string): Promise<void> {
  const markFile = path.join(directory, 'boot');
  const mark = await bootMark();
  const before = await readFile(markFile, 'utf8').catch(ignoreMissing);
  if (before === mark) return;
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true });
  await writeFile(markFile, mark);
}

async function bootMark(): Promise<string> {
  const linux = await readFile('/proc/sys/kernel/random/boot_id', 'utf8').catch(ignoreMissing);
  // Elsewhere the minute of the boot, as far as the clock tells.
  return linux?.trim() ?? String(Math.round((Date.now() / 1_000 - os.uptime()) / 60));
}

function ignoreMissing(error: unknown): null {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
  throw error;
}

class Cache implements LayerCache {
  readonly #options: LayerCacheOptions;
  readonly #repositoriesDir: string;
  readonly #workshopDir: string;
  /** In the order of use: the first is the next to go. */
  readonly #cached = new Map<RepositoryId, Cached>();

  constructor(options: LayerCacheOptions, repositoriesDir: string, workshopDir: string) {
    this.#options = options;
    this.#repositoriesDir = repositoriesDir;
    this.#workshopDir = workshopDir;
  }

  async readManifests(): Promise<void> {
    for (const name of await readdir(this.#repositoriesDir)) {
      const gitDir = path.join(this.#repositoriesDir, name);
      const manifest = await readFile(path.join(gitDir, 'layers'), 'utf8').catch(ignoreMissing);
      if (manifest === null) {
        await rm(gitDir, { recursive: true, force: true });
        continue;
      }
      const cached = newCached(name as RepositoryId, gitDir);
      for (const line of manifest.split('\n')) {
        const [layer, pack, size] = line.split(' ');
        // A line cut off by a kill: its layer is fetched again.
        if (layer === undefined || pack === undefined || !/^\d+;$/.test(size ?? '')) continue;
        cached.present.set(layer, pack);
        cached.sizeBytes += Number.parseInt(size ?? '0', 10);
      }
      this.#cached.set(cached.id, cached);
    }
  }

  sizeBytes(): number {
    let total = 0;
    for (const cached of this.#cached.values()) total += cached.sizeBytes;
    return total;
  }

  async workshop(): Promise<string> {
    const directory = path.join(this.#workshopDir, randomUUID());
    await mkdir(directory, { recursive: true });
    return directory;
  }

  async lease(objects: CommittedObjects): Promise<Lease> {
    const cached = this.#use(objects.repository);
    cached.leases += 1;
    let held = true;
    const release = (): void => {
      if (!held) return;
      held = false;
      cached.leases -= 1;
      void this.#evict();
    };
    try {
      await this.#ensureFolder(cached);
      await this.#ensureLayers(cached, objects);
    } catch (error) {
      release();
      throw error;
    }
    const objectsDir = path.join(cached.gitDir, 'objects');
    return {
      gitDir: cached.gitDir,
      objectsDir,
      packDir: path.join(objectsDir, 'pack'),
      generation: () => cached.generation,
      release,
    };
  }

  #use(id: RepositoryId): Cached {
    const cached = this.#cached.get(id) ?? newCached(id, path.join(this.#repositoriesDir, id));
    this.#cached.delete(id);
    this.#cached.set(id, cached);
    return cached;
  }

  /** The folder may be missing, at first use or because somebody deleted the cache. */
  async #ensureFolder(cached: Cached): Promise<void> {
    const packDir = path.join(cached.gitDir, 'objects', 'pack');
    const there = await stat(packDir).catch(ignoreMissing);
    if (there !== null) return;
    cached.present.clear();
    cached.complete = null;
    cached.sizeBytes = 0;
    cached.generation += 1;
    await mkdir(packDir, { recursive: true });
    await mkdir(path.join(cached.gitDir, 'refs'), { recursive: true });
    await mkdir(this.#workshopDir, { recursive: true });
    await writeFile(path.join(cached.gitDir, 'config'), '[core]\n\trepositoryformatversion = 0\n\tbare = true\n');
    await writeFile(path.join(cached.gitDir, 'HEAD'), 'ref: refs/heads/none\n');
    await writeFile(path.join(cached.gitDir, 'layers'), '');
  }

  async #ensureLayers(cached: Cached, objects: CommittedObjects): Promise<void> {
    const { shrinkEpoch, layers } = objects;
    const known = cached.complete !== null && cached.complete.shrinkEpoch === shrinkEpoch ? cached.complete.count : 0;
    if (known >= layers.length) return;
    const missing: Layer[] = [];
    for (let index = known; index < layers.length; index += 1) {
      const layer = layers.at(index);
      if (layer !== undefined && !cached.present.has(layer.id)) missing.push(layer);
    }
    const next = missing[Symbol.iterator]();
    const work = async (): Promise<void> => {
      for (const layer of next) await this.#fill(cached, layer);
    };
    await Promise.all(Array.from({ length: Math.min(FETCHES_MAX, missing.length) }, work));
    cached.complete = { shrinkEpoch, count: layers.length };
  }

  /** One fetch, or one install, for everybody who needs the layer at this moment. */
  #fill(cached: Cached, layer: Layer): Promise<void> {
    return this.#once(cached, layer, async () => {
      const directory = await this.workshop();
      try {
        await unpackLayer(layer, await this.#read(layer), directory);
        await this.#link(cached, layer, directory);
      } finally {
        await rm(directory, { recursive: true, force: true });
      }
    });
  }

  async #read(layer: Layer): Promise<AsyncIterable<Uint8Array>> {
    try {
      return await this.#options.layers.get(layer.key);
    } catch (cause) {
      if (!(cause instanceof LayerStoreError) || cause.code !== 'layer-not-found') throw cause;
      throw new ObjectDatabaseError('layer-missing', `Layer ${layer.id} is not at ${layer.key}`, { cause });
    }
  }

  #once(cached: Cached, layer: Layer, make: () => Promise<void>): Promise<void> {
    const running = cached.filling.get(layer.id);
    if (running !== undefined) return running;
    if (cached.present.has(layer.id)) return Promise.resolve();
    const made = make().finally(() => cached.filling.delete(layer.id));
    cached.filling.set(layer.id, made);
    return made;
  }

  async install(repository: RepositoryId, layer: Layer, fromPackDir: string): Promise<void> {
    const cached = this.#use(repository);
    cached.leases += 1;
    try {
      await this.#once(cached, layer, async () => {
        await this.#ensureFolder(cached);
        await this.#link(cached, layer, fromPackDir);
      });
    } finally {
      cached.leases -= 1;
      void this.#evict();
    }
  }

  /** The index last: until then no reader takes the pack for there. Two layers may hold the same pack. */
  async #link(cached: Cached, layer: Layer, fromPackDir: string): Promise<void> {
    const packDir = path.join(cached.gitDir, 'objects', 'pack');
    let bytes = 0;
    for (const suffix of ['pack', 'rev', 'idx']) {
      const name = `pack-${layer.pack}.${suffix}`;
      const source = path.join(fromPackDir, name);
      const there = await stat(source).catch(ignoreMissing);
      // A layer holds no reverse index: git makes do without one.
      if (there === null && suffix === 'rev') continue;
      bytes += there?.size ?? 0;
      await link(source, path.join(packDir, name)).catch((error: unknown) => {
        if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
      });
    }
    await appendFile(path.join(cached.gitDir, 'layers'), `${layer.id} ${layer.pack} ${bytes};\n`);
    cached.present.set(layer.id, layer.pack);
    cached.sizeBytes += bytes;
    cached.generation += 1;
  }

  async drop(repository: RepositoryId): Promise<void> {
    const cached = this.#cached.get(repository);
    if (cached !== undefined && cached.leases === 0) await this.#remove(cached);
  }

  async #evict(): Promise<void> {
    let total = this.sizeBytes();
    for (const cached of [...this.#cached.values()]) {
      if (total <= this.#options.cacheBytesMax) return;
      if (cached.leases > 0) continue;
      total -= cached.sizeBytes;
      try {
        await this.#remove(cached);
      } catch (error) {
        this.#options.log.warn({ error, repository: cached.id }, 'A cached repository could not be evicted');
      }
    }
  }

  /** Out of sight at once, without an await: whoever comes next begins a new folder. */
  async #remove(cached: Cached): Promise<void> {
    this.#cached.delete(cached.id);
    const grave = path.join(this.#workshopDir, randomUUID());
    try {
      renameSync(cached.gitDir, grave);
    } catch (error) {
      ignoreMissing(error);
      return;
    }
    await rm(grave, { recursive: true, force: true });
  }
}

function newCached(id: RepositoryId, gitDir: string): Cached {
  return {
    id,
    gitDir,
    present: new Map(),
    filling: new Map(),
    complete: null,
    sizeBytes: 0,
    leases: 0,
    generation: 0,
  };
}
