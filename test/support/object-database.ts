/** The object database over a layer store in memory, with pushes into it as the use case makes them. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { GitObjectDatabaseOptions } from '../../adapters/git/object-database.ts';
import { createGitObjectDatabase, type GitObjectDatabase } from '../../adapters/git/object-database.ts';
import type { PackRefusal } from '../../core/git/pack-refusal.ts';
import { PackRefusedError } from '../../core/git/pack-refusal.ts';
import { type LayerId, type RepositoryId, uuid } from '../../core/kernel/ids.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { CommittedObjects, Quarantine, ReceivePackOptions } from '../../core/ports/object-database.ts';
import type { Layer } from '../../core/repository/layer.ts';
import { layerKey } from '../../core/repository/layer.ts';
import { temporaryFolder } from './git.ts';
import { layersIn, onPlatform } from './layers-in.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';

export interface TestDatabase {
  readonly database: GitObjectDatabase;
  readonly layers: LayerStore;
  readonly directory: string;
  readonly warnings: unknown[];
  /** A new, empty repository. */
  newObjects(): CommittedObjects;
  receive(
    objects: CommittedObjects,
    pack: Uint8Array | AsyncIterable<Uint8Array>,
    options?: Partial<ReceivePackOptions>,
  ): Promise<Quarantine | PackRefusal>;
  /** Stores a received pack as a layer and installs it in the cache, as a committed push does. */
  commit(objects: CommittedObjects, quarantine: Quarantine, options?: { install?: boolean }): Promise<CommittedObjects>;
  /** A whole push; throws if the pack is refused. */
  push(objects: CommittedObjects, pack: Uint8Array): Promise<CommittedObjects>;
  close(): Promise<void>;
}

interface TestDatabaseOptions extends Partial<Omit<GitObjectDatabaseOptions, 'layers'>> {
  /** Where every repository is stored. */
  readonly layers?: LayerStore;
}

export async function testDatabase(options: TestDatabaseOptions = {}): Promise<TestDatabase> {
  const folder = temporaryFolder('objects');
  const directory = options.directory ?? join(folder.path, 'cache');
  const layers = options.layers ?? createMemoryLayerStore();
  const warnings: unknown[] = [];
  const note = (fields: object, message: string) => warnings.push({ message, ...fields });
  const log = { debug: () => {}, info: () => {}, warn: note, error: note };
  const defaults = { log, cacheBytesMax: 2 ** 30 };
  const database = await createGitObjectDatabase({
    ...defaults,
    ...options,
    layers: layersIn(layers),
    directory,
  }).catch((error: unknown) => {
    folder.remove();
    throw error;
  });

  const receive: TestDatabase['receive'] = (objects, pack, more = {}) =>
    database.receive({
      objects,
      pack: pack instanceof Uint8Array ? once(pack) : pack,
      packSizeBytesMax: 2 ** 30,
      objectCountMax: 1_000_000,
      signal: new AbortController().signal,
      ...more,
    });
  const commit: TestDatabase['commit'] = async (objects, quarantine, { install = true } = {}) => {
    const layer = await storeLayer(layers, objects, quarantine);
    if (install) await quarantine.install(layer);
    else await quarantine.discard();
    return withLayer(objects, layer);
  };
  return {
    database,
    layers,
    directory,
    warnings,
    newObjects: () => ({
      repository: uuid<RepositoryId>(randomUUID()),
      place: onPlatform(),
      revision: 'none',
      shrinkEpoch: 0,
      keptSinceEpoch: 0,
      layers: [],
    }),
    receive,
    commit,
    push: async (objects, pack) => {
      const received = await receive(objects, pack);
      if ('refused' in received) throw new Error(`Refused: ${received.refused}: ${received.detail}`);
      return commit(objects, received);
    },
    close: async () => {
      await database.close();
      folder.remove();
    },
  };
}

/** Puts the quarantine's tar into the layer store and returns the layer. */
export async function storeLayer(
  layers: LayerStore,
  objects: CommittedObjects,
  quarantine: Quarantine,
): Promise<Layer> {
  const id = uuid<LayerId>(randomUUID());
  const key = layerKey(`repositories/${objects.repository}/layers/${id}.tar`);
  const content = await quarantine.layer([], { format: 1, layer_id: id });
  await layers.put(key, content.body(), content.sizeBytes);
  return { id, key, sizeBytes: content.sizeBytes, sha256: content.sha256(), pack: quarantine.pack };
}

/** Waits for the checks of a pack that may go on after it was received. */
export async function fullyChecked(received: Quarantine | PackRefusal): Promise<Quarantine | PackRefusal> {
  if ('refused' in received || received.objectCount === 0) return received;
  try {
    await Array.fromAsync((await received.layer([], {})).body());
    return received;
  } catch (error) {
    await received.discard();
    if (error instanceof PackRefusedError) return error.refusal;
    throw error;
  }
}

/** Returns the repository's objects after one more layer was committed. */
export function withLayer(objects: CommittedObjects, layer: Layer): CommittedObjects {
  const revision = objects.revision === 'none' ? 0 : objects.revision + 1;
  return { ...objects, revision, layers: [...objects.layers, layer] };
}

/** Yields the bytes in chunks of a size, as a connection delivers them. */
export async function* once(bytes: Uint8Array, size = 65_536): AsyncGenerator<Uint8Array> {
  for (let start = 0; start < bytes.length; start += size) yield bytes.subarray(start, start + size);
}
