/**
 * Merges a folder's many small packs into few, in a new folder and off the request path.
 *
 * Must stay true: every object of every layer stays, whether a ref reaches it or not, since later pushes are checked
 * against all of them; nothing in the old folder is changed, so processes that run in it go on.
 */
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { partsToMerge } from '../../../core/kernel/geometric-series.ts';
import {
  type CacheFolder,
  copyLayers,
  makeCacheFolder,
  recordLayers,
  type PresentLayer,
  packPath,
} from './cache-folder.ts';
import type { Git, GitCommand } from '../process/git-commands.ts';
import { lines } from '../packs/git-objects.ts';
import type { IncomingFolders } from './incoming-folders.ts';

/** Larger packs are not merged: copying them costs more than keeping them. */
const MERGED_PACK_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Makes a folder under `parent` with the same layers: the small packs merged into one, the others hard-linked. Resolves
 * null when fewer than two packs would be merged. The caller holds a lease on the folder.
 */
export async function mergeSmallPacks(
  git: Git,
  folder: CacheFolder,
  incoming: IncomingFolders,
  parent: string,
): Promise<CacheFolder | null> {
  const present = [...folder.present.values()];
  const chosen = choosePacks(present);
  if (chosen.size < 2) return null;
  const merged = await makeCacheFolder(parent, folder.repository, folder.shrinkEpoch);
  const scratch = await incoming.take();
  try {
    await copyLayers(
      folder,
      merged,
      present.filter(({ pack }) => !chosen.has(pack)),
    );
    const pack = await writeMergedPack(git, { folder, packs: chosen, target: join(scratch, 'pack') });
    for (const extension of ['pack', 'rev', 'idx'] as const) {
      await rename(join(scratch, 'pack', `pack-${pack}.${extension}`), packPath(merged, pack, extension));
    }
    const [packFile, idxFile] = await Promise.all([
      stat(packPath(merged, pack, 'pack')),
      stat(packPath(merged, pack, 'idx')),
    ]);
    const sizes = { pack, packBytes: packFile.size, idxBytes: idxFile.size };
    const moved = present.filter((layer) => chosen.has(layer.pack)).map((layer) => ({ ...layer, ...sizes }));
    for (const layer of moved) merged.present.set(layer.id, layer);
    await recordLayers(merged, moved);
    return merged;
  } catch (error) {
    await rm(merged.path, { recursive: true, force: true });
    throw error;
  } finally {
    await incoming.remove(scratch);
  }
}

/** The packs to merge, by the rule of core/kernel/geometric-series.ts. */
export function choosePacks(layers: readonly PresentLayer[]): ReadonlySet<string> {
  const sizes = new Map(layers.map(({ pack, packBytes }) => [pack, packBytes]));
  const small = [...sizes].filter(([, size]) => size <= MERGED_PACK_BYTES_MAX);
  return new Set(partsToMerge(small, ([, size]) => size).map(([pack]) => pack));
}

export interface MergedPackOptions {
  readonly folder: CacheFolder;
  /** Checksums of packs in the folder, hex. */
  readonly packs: Iterable<string>;
  readonly target: string;
  readonly signal?: AbortSignal;
}

/**
 * Writes one pack with every object of some packs of a folder, and its indexes, as `pack-<checksum>.*` in the target
 * folder. Returns the checksum, hex.
 */
export async function writeMergedPack(git: Git, { folder, packs, target, signal }: MergedPackOptions): Promise<string> {
  const command: GitCommand = {
    args: ['pack-objects', '--stdin-packs', '--delta-base-offset', '-q', join(target, 'pack')],
    view: { key: folder.repository, variables: { GIT_DIR: folder.path } },
    config: [['core.fsync', 'none']],
    background: true,
    ...(signal === undefined ? {} : { signal }),
  };
  let answer = '';
  const names = Array.from(packs, (pack) => `pack-${pack}.pack`);
  for await (const chunk of git.stream(command, lines(names))) answer += chunk.toString('latin1');
  return packNameIn(answer);
}

/** Returns the checksum that git pack-objects printed, hex. */
export function packNameIn(answer: string): string {
  const pack = /^([0-9a-f]{40})\n$/.exec(answer)?.[1];
  if (pack === undefined) throw new TypeError(`git pack-objects printed ${JSON.stringify(answer)}`);
  return pack;
}
