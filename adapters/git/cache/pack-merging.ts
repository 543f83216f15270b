/**
 * Merges a folder's many small packs into few, in a new folder and off the request path.
 *
 * Invariants: every object of every layer stays, whether a ref reaches it or not, since later pushes are checked
 * against all of them; nothing in the old folder is changed, so processes that run in it go on.
 */
import { readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { partsToMerge } from '../../../core/kernel/geometric-series.ts';
import { PACK_CHECKSUM_PATTERN } from '../../../core/kernel/ids.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import { createTurns } from '../packs/event-loop-turns.ts';
import { lines } from '../packs/git-objects.ts';
import { joinable, joinPacks, type PackBytes } from '../packs/joined-pack.ts';
import { packIndexRows } from '../packs/pack-index-file.ts';
import { commandError, completed, type Git, type GitCommand } from '../process/git-commands.ts';
import {
  type CacheFolder,
  copyLayers,
  makeCacheFolder,
  type PresentLayer,
  packPath,
  recordLayers,
  removeFolder,
  viewOf,
} from './cache-folder.ts';
import type { IncomingFolders } from './incoming-folders.ts';

/**
 * Larger packs are not merged: copying them costs more than keeping them. Internal: the objects are the same, merged or
 * not.
 */
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
  const merged = await makeCacheFolder(parent, folder.repository, folder.shrinkEpoch, folder.held.memory);
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
    await removeFolder(merged);
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
  readonly signal?: AbortSignal | undefined;
}

/**
 * Writes one pack with every object of some packs of a folder, and its indexes, as `pack-<checksum>.*` in the target
 * folder, which exists. Returns the checksum, hex.
 */
export async function writeMergedPack(git: Git, options: MergedPackOptions): Promise<string> {
  const { folder, target, signal } = options;
  const parts = await smallPacks(options);
  const key = folder.repository;
  const joined = parts === null ? null : await writeJoinedPack(git, { parts, key, target, signal });
  return joined ?? writeRepackedPack(git, options);
}

/** How long a join has the event loop at a time. */
const JOIN_TURN_MS = 2;
/**
 * git inflates each object to index a pack, which takes milliseconds for what people push. Of a pack that was made to
 * take longer it makes another one without. Internal: the objects are the same, merged or not.
 */
const INDEXING_CPU_MS_MAX = 5_000;

export interface JoinedPackOptions extends Pick<MergedPackOptions, 'target' | 'signal'> {
  readonly parts: readonly PackBytes[];
  /** The repository. */
  readonly key: string;
}

/** Does what `writeMergedPack` does, from these parts. Resolves null, and nothing is left, if they cannot be joined. */
export async function writeJoinedPack(
  git: Git,
  { parts, key, target, signal }: JoinedPackOptions,
): Promise<string | null> {
  const joined = await joinPacks(parts, createTurns(JOIN_TURN_MS, signal));
  if (joined === null) return null;
  const file = (extension: string) => join(target, `pack-${joined.name}.${extension}`);
  await writeFile(file('pack'), joined.bytes, { mode: 0o444 });
  const command: GitCommand = {
    args: ['index-pack', '--threads=1', '-o', file('idx'), file('pack')],
    // The view of no repository: git would compare these objects with a repository's own.
    view: { key, variables: async () => ({}) },
    cpuMsMax: () => INDEXING_CPU_MS_MAX,
    ...inBackground(signal),
  };
  const end = completed(command, await git.run(command));
  if (end.killed === 'timeout') {
    for (const extension of ['pack', 'idx', 'rev']) await rm(file(extension), { force: true });
    return null;
  }
  if (end.code !== 0 || packNameIn(end.stdout ?? '') !== joined.name) throw commandError(command, end);
  const computed = packIndexRows(await readFile(file('idx')));
  if (computed.length === joined.ids.size && computed.every(({ id }) => joined.ids.has(id.toString('hex')))) {
    return joined.name;
  }
  throw new ObjectDatabaseError('object-database-unavailable', `Pack ${joined.name} lacks objects of its parts`);
}

/** Reads the packs; null if they are too large to be joined. */
async function smallPacks({ folder, packs }: MergedPackOptions): Promise<readonly PackBytes[] | null> {
  const names = new Set(packs);
  // Two layers may hold the same pack.
  const chosen = new Map([...folder.present.values()].filter(({ pack }) => names.has(pack)).map((of) => [of.pack, of]));
  if (joinable([...chosen.values()]).length < names.size) return null;
  const parts: PackBytes[] = [];
  for (const name of names) {
    parts.push(folder.held.get(name) ?? (await readPack(folder, name)));
  }
  return parts;
}

async function readPack(folder: CacheFolder, name: string): Promise<PackBytes> {
  const [pack, idx] = await Promise.all([
    readFile(packPath(folder, name, 'pack')),
    readFile(packPath(folder, name, 'idx')),
  ]);
  return { pack, idx };
}

/** Does what `writeMergedPack` does, with deltas that git finds. */
export async function writeRepackedPack(
  git: Git,
  { folder, packs, target, signal }: MergedPackOptions,
): Promise<string> {
  const command: GitCommand = {
    args: ['pack-objects', '--stdin-packs', '--delta-base-offset', '-q', join(target, 'pack')],
    view: viewOf(folder),
    ...inBackground(signal),
  };
  let answer = '';
  const names = Array.from(packs, (pack) => `pack-${pack}.pack`);
  for await (const chunk of git.stream(command, lines(names))) answer += chunk.toString('latin1');
  return packNameIn(answer);
}

function inBackground(signal: AbortSignal | undefined): Pick<GitCommand, 'config' | 'background' | 'signal'> {
  return { config: [['core.fsync', 'none']], background: true, ...(signal === undefined ? {} : { signal }) };
}

const PRINTED_CHECKSUM = new RegExp(`^(${PACK_CHECKSUM_PATTERN})\\n$`);

/** Returns the checksum that git pack-objects or index-pack printed, hex. */
export function packNameIn(answer: string): string {
  const pack = PRINTED_CHECKSUM.exec(answer)?.[1];
  if (pack === undefined) throw new TypeError(`git pack-objects printed ${JSON.stringify(answer)}`);
  return pack;
}
