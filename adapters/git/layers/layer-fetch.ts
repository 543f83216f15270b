/**
 * Fetches one layer's pack from the layer store onto this node.
 *
 * Invariants: the bytes are hashed as they arrive, and none of them is used before the whole layer has the SHA-256
 * that its event names; when the fetch fails, the caller removes the folder.
 */
import { createHash } from 'node:crypto';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { type LayerStore, LayerStoreError } from '../../../core/ports/layer-store.ts';
import type { LayerPlace, LayerStores } from '../../../core/ports/layer-stores.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import type { PackFiles } from '../packs/object-source.ts';
import { LayerFormatError, packEntryName, readTar } from './layer-tar.ts';

/**
 * Writes the layer's pack and index into the folder. Rejects with an ObjectDatabaseError:
 * `layer-missing`, `layer-corrupt` (its message names layer and key), `object-database-unavailable`.
 */
export async function fetchLayer(
  layers: LayerStores,
  place: LayerPlace,
  layer: Layer,
  folder: string,
): Promise<PackFiles> {
  try {
    return await write(layers.of(place, 'read'), layer, folder);
  } catch (cause) {
    if (cause instanceof LayerFormatError) layers.altered(place, layer.key);
    throw layerError(layer, cause);
  }
}

async function write(layers: LayerStore, layer: Layer, folder: string): Promise<PackFiles> {
  const paths = { packPath: join(folder, 'fetched.pack'), idxPath: join(folder, 'fetched.idx') };
  const wanted = new Map([
    [packEntryName(layer.pack, 'pack'), paths.packPath],
    [packEntryName(layer.pack, 'idx'), paths.idxPath],
  ]);
  const hash = createHash('sha256');
  let received = 0;
  const hashed = async function* () {
    for await (const chunk of await layers.get(layer.key)) {
      received += chunk.byteLength;
      if (received > layer.sizeBytes) throw new LayerFormatError(`it is longer than ${layer.sizeBytes} bytes`);
      hash.update(chunk);
      yield chunk;
    }
  };
  let file: FileHandle | null = null;
  try {
    for await (const part of readTar(hashed())) {
      if ('bytes' in part) {
        if (file !== null) await writeAll(file, part.bytes);
        continue;
      }
      await file?.close();
      file = null;
      const path = wanted.get(part.entry);
      // Each name is accepted once: a second entry of a name would change bytes that are already written.
      wanted.delete(part.entry);
      if (path !== undefined) file = await open(path, 'wx', 0o640);
    }
  } finally {
    await file?.close();
  }
  const sha256 = hash.digest('hex');
  if (sha256 !== layer.sha256) throw new LayerFormatError(`its SHA-256 is ${sha256}, not ${layer.sha256}`);
  if (wanted.size > 0) throw new LayerFormatError(`it lacks ${[...wanted.keys()].join(' and ')}`);
  const [pack, idx] = await Promise.all([stat(paths.packPath), stat(paths.idxPath)]);
  return { ...paths, packBytes: pack.size, idxBytes: idx.size };
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let offset = 0; offset < bytes.length; ) {
    offset += (await file.write(bytes, offset, bytes.length - offset)).bytesWritten;
  }
}

function layerError(layer: Layer, cause: unknown): Error {
  const where = `Layer ${layer.id} at ${layer.key}`;
  if (cause instanceof LayerFormatError) {
    return new ObjectDatabaseError('layer-corrupt', `${where} is corrupt: ${cause.message}`, { cause });
  }
  if (cause instanceof LayerStoreError && cause.code === 'layer-not-found') {
    return new ObjectDatabaseError('layer-missing', `${where} is not in the layer store`, { cause });
  }
  const message = cause instanceof Error ? cause.message : String(cause);
  return new ObjectDatabaseError('object-database-unavailable', `${where} could not be fetched: ${message}`, { cause });
}
