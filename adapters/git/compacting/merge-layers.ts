/**
 * Merges the packs of some layers into one, in a folder of its own (core/ports/layer-merges.ts).
 *
 * Invariants: exactly the packs of these layers are merged, whatever else this node's cache holds; the merged pack is
 * handed out only after its index was compared with those of all its parts; nothing stays behind after an end.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { canonicalJson } from '../../../core/kernel/json.ts';
import type { MergedLayers } from '../../../core/ports/layer-merges.ts';
import { type CommittedObjects, ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import { type CacheFolder, makeCacheFolder, objectsPath, packPath } from '../cache/cache-folder.ts';
import type { LayerCache } from '../cache/layer-cache.ts';
import { type JoinedPackOptions, writeJoinedPack, writeMergedPack, writeRepackedPack } from '../cache/pack-merging.ts';
import { layerContent } from '../layers/layer-tar.ts';
import { type OpenPack, openFreshPack } from '../packs/object-source.ts';
import type { PackMemory } from '../packs/pack-file.ts';
import { hasAllOf, openPackIndex } from '../packs/pack-index.ts';
import type { Git } from '../process/git-commands.ts';
import type { GitLog } from '../process/log.ts';

export interface MergingContext {
  readonly git: Git;
  readonly cache: LayerCache;
  readonly memory: PackMemory;
  readonly log: GitLog;
}

export async function mergeLayers(
  context: MergingContext,
  objects: CommittedObjects,
  layers: readonly Layer[],
  signal: AbortSignal,
): Promise<MergedLayers> {
  const { git, cache } = context;
  const scratch = await cache.incoming.take();
  try {
    const small = await cache.readSmall(objects, layers);
    const larger = layers.filter(({ pack }) => !small.names.has(pack));
    const joining = { parts: small.parts, key: objects.repository, signal };
    const joined = larger.length > 0 ? null : await writeJoinedPack(git, { ...joining, target: join(scratch, 'pack') });
    const merged =
      joined === null
        ? await mergeFiles(context, objects, { layers, larger, joining, scratch })
        : await openWritten(context, scratch, joined);
    return mergedLayers(context, scratch, merged);
  } catch (error) {
    await cache.incoming.remove(scratch);
    throw error;
  }
}

interface MergedFiles {
  readonly layers: readonly Layer[];
  /** Those that are not joined. */
  readonly larger: readonly Layer[];
  readonly joining: Omit<JoinedPackOptions, 'target'>;
  readonly scratch: string;
}

/** Brings the packs into a folder below `scratch`, the small ones as one, and merges them there. */
async function mergeFiles(
  context: MergingContext,
  objects: CommittedObjects,
  { layers, larger, joining, scratch }: MergedFiles,
): Promise<OpenPack> {
  const { git, cache } = context;
  const { signal } = joining;
  const folder = await makeCacheFolder(scratch, objects.repository, objects.shrinkEpoch);
  const target = join(objectsPath(folder), 'pack');
  // Where none is larger, they could not be joined.
  const isTried = joining.parts.length > 1;
  const joined = isTried && larger.length > 0 ? await writeJoinedPack(git, { ...joining, target }) : null;
  const brought = joined === null ? layers : larger;
  await cache.collect(objects, brought, folder);
  signal?.throwIfAborted();
  const packs = new Set(brought.map(({ pack }) => pack));
  if (joined !== null) packs.add(joined);
  const merging = { folder, packs, target: join(scratch, 'pack'), signal };
  const name = await (isTried ? writeRepackedPack(git, merging) : writeMergedPack(git, merging));
  const merged = await openWritten(context, scratch, name);
  for (const pack of packs) await assertHasAllOf(context, merged, folder, pack);
  return merged;
}

/** Opens a pack that git wrote into a folder of incoming files. */
export function openWritten({ memory }: MergingContext, scratch: string, name: string): Promise<OpenPack> {
  const file = (extension: string) => join(scratch, 'pack', `pack-${name}.${extension}`);
  return openFreshPack(memory, name, file('pack'), file('idx'));
}

async function assertHasAllOf(
  { memory }: MergingContext,
  merged: OpenPack,
  folder: CacheFolder,
  pack: string,
): Promise<void> {
  const part = await openPackIndex(memory.pages, await memory.pages.open(packPath(folder, pack, 'idx')));
  if (await hasAllOf(merged.index, part)) return;
  throw new ObjectDatabaseError('object-database-unavailable', `A merged pack lacks objects of pack ${pack}`);
}

/** Takes over the folder, which holds nothing else that is needed. */
export function mergedLayers({ cache, memory, log }: MergingContext, scratch: string, merged: OpenPack): MergedLayers {
  const { name, index, file } = merged;
  const fileOf = (extension: string) => join(scratch, 'pack', `pack-${name}.${extension}`);
  let ended = false;
  const end = async (): Promise<void> => {
    ended = true;
    await cache.incoming.remove(scratch);
  };
  return {
    pack: name,
    objectCount: index.objectCount,
    layer: (description) =>
      layerContent(memory.pages, {
        pack: name,
        packFile: file.file,
        idxFile: index.file,
        updates: '',
        description: `${canonicalJson(description)}\n`,
      }),
    install: async (objects, layer) => {
      if (ended) return;
      try {
        const [pack, idx] = await Promise.all([stat(fileOf('pack')), stat(fileOf('idx'))]);
        const paths = { packPath: fileOf('pack'), idxPath: fileOf('idx'), revPath: fileOf('rev') };
        await cache.installAhead(objects, layer, { ...paths, packBytes: pack.size, idxBytes: idx.size }, merged);
      } catch (error) {
        // The compaction is committed: the next reader fetches the layer from the store.
        log.warn({ layer: layer.id, error }, 'A merged layer could not be moved into the cache');
      } finally {
        await end();
      }
    },
    discard: async () => {
      if (!ended) await end();
    },
  };
}
