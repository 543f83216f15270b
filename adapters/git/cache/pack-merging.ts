/**
 * Merges a folder's many small packs into few, in a new folder and off the request path.
 *
 * Must stay true: every object of every layer stays, whether a ref reaches it or not, since later pushes are checked
 * against all of them; nothing in the old folder is changed, so processes that run in it go on.
 */
import { rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
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
/** A pack is not merged if it is more than this many times as large as all smaller ones together. */
const GROWTH = 2;

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
    const pack = await writeMergedPack(git, folder, [...chosen], join(scratch, 'pack'));
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

/**
 * The packs to merge: all but the largest ones that each outweigh all smaller ones. It is the rule of git's geometric
 * repack (git-repack(1)): few packs stay whatever their sizes are, and an object is copied a logarithmic number of
 * times.
 */
export function choosePacks(layers: readonly PresentLayer[]): ReadonlySet<string> {
  const sizes = new Map(layers.map(({ pack, packBytes }) => [pack, packBytes]));
  const small = [...sizes].filter(([, size]) => size <= MERGED_PACK_BYTES_MAX).sort(([, a], [, b]) => a - b);
  let smaller = small.reduce((sum, [, size]) => sum + size, 0);
  let count = small.length;
  for (const [, size] of small.toReversed()) {
    smaller -= size;
    if (size <= GROWTH * smaller) break;
    count -= 1;
  }
  return new Set(small.slice(0, count).map(([pack]) => pack));
}

async function writeMergedPack(
  git: Git,
  folder: CacheFolder,
  packs: readonly string[],
  target: string,
): Promise<string> {
  const command: GitCommand = {
    args: ['pack-objects', '--stdin-packs', '--delta-base-offset', '-q', join(target, 'pack')],
    view: { key: folder.repository, variables: { GIT_DIR: folder.path } },
    config: [['core.fsync', 'none']],
  };
  let answer = '';
  const names = packs.map((pack) => `pack-${pack}.pack`);
  for await (const chunk of git.stream(command, lines(names))) answer += chunk.toString('latin1');
  const pack = /^([0-9a-f]{40})\n$/.exec(answer)?.[1];
  if (pack === undefined) throw new TypeError(`git pack-objects printed ${JSON.stringify(answer)}`);
  return pack;
}
