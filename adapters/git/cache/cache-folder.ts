/**
 * One repository's objects at one shrink epoch, as a bare repository on this node's disk.
 *
 * Invariants: the folder's own manifest lists which layers are in it; file names decide nothing. Packs are only
 * added until the whole folder is removed, so a process that runs in it never loses one. git starts in it through
 * `viewOf`, or after `writeHeld`: some packs are in memory only.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { statSync } from 'node:fs';
import { appendFile, link, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type LayerId, parseUuid, type RepositoryId } from '../../../core/kernel/ids.ts';
import type { Layer } from '../../../core/repository/layer.ts';
import type { PackBytes } from '../packs/joined-pack.ts';
import type { PackFiles, PackPlace } from '../packs/object-source.ts';
import type { ObjectView } from '../process/git-commands.ts';
import { type HeldMemory, HeldPacks, scratchMemory, writePackFiles } from './held-packs.ts';

/** A layer that is in a folder. */
export interface PresentLayer {
  readonly id: LayerId;
  readonly sha256: string;
  /** Two layers may hold the same pack. */
  readonly pack: string;
  readonly packBytes: number;
  readonly idxBytes: number;
}

export interface CacheFolder {
  readonly path: string;
  readonly repository: RepositoryId;
  readonly shrinkEpoch: number;
  /** In no particular order. */
  readonly present: Map<LayerId, PresentLayer>;
  /** The packs that are in memory only. */
  readonly held: HeldPacks<PresentLayer>;
}

const MANIFEST = 'layers.jsonl';
/** The index last: git finds packs by their index. */
const PACK_FILES = ['pack', 'rev', 'idx'] as const;
const SMALL_PACK_FILES = ['pack', 'idx'] as const;
/**
 * Git makes the reverse index of a smaller pack faster than it opens one. Internal: git makes a reverse index that is
 * missing.
 */
const REVERSE_INDEX_PACK_BYTES_MIN = 1024 * 1024;
/** The shrink epoch, and random digits that make the name unique. */
const FOLDER_NAME = /^(\d+)-[0-9a-f]{12}$/;
/** The subfolder of views, each of which shows the objects with a set of refs (view-folders.ts). */
export const VIEWS = 'views';

export function objectsPath(folder: CacheFolder): string {
  return join(folder.path, 'objects');
}

export function packPath(folder: CacheFolder, pack: string, extension: 'pack' | 'idx' | 'rev'): string {
  return `${packBase(folder.path, pack)}.${extension}`;
}

/** The path of a pack's files, without their extension. */
function packBase(path: string, pack: string): string {
  return join(path, 'objects', 'pack', `pack-${pack}`);
}

function newHeldPacks(path: string, memory: HeldMemory): HeldPacks<PresentLayer> {
  return new HeldPacks({ memory, pathOf: (pack) => packBase(path, pack) });
}

/** Where a pack of the folder is read. */
export function packPlace(folder: CacheFolder, pack: string): PackPlace {
  const path = (extension: 'pack' | 'idx') => packPath(folder, pack, extension);
  return { held: () => folder.held.get(pack), packPath: path('pack'), idxPath: path('idx') };
}

/** All objects of a folder, for processes that take turns by this key. */
export function viewOf(folder: CacheFolder, key: string = folder.repository): ObjectView {
  return viewOfRefs(folder, key, folder.path);
}

/** All objects of a folder with the refs of a view, whose folder this is (view-folders.ts). */
export function viewOfRefs(folder: CacheFolder, key: string, path: string): ObjectView {
  const variables = async () => {
    await writeHeld(folder);
    return { GIT_DIR: path };
  };
  return { key, variables };
}

/** Makes an empty folder. Its name is unique, so that a folder that is being removed is never in its way. */
export async function makeCacheFolder(
  parent: string,
  repository: RepositoryId,
  shrinkEpoch: number,
  memory: HeldMemory = scratchMemory(),
): Promise<CacheFolder> {
  const path = join(parent, repository, `${shrinkEpoch}-${randomBytes(6).toString('hex')}`);
  await mkdir(join(path, 'objects', 'pack'), { recursive: true });
  await mkdir(join(path, 'refs'));
  await writeFile(join(path, 'HEAD'), 'ref: refs/heads/main\n');
  return { path, repository, shrinkEpoch, present: new Map(), held: newHeldPacks(path, memory) };
}

/** Removes a folder that nobody uses. */
export async function removeFolder(folder: CacheFolder): Promise<void> {
  folder.held.clear();
  await rm(folder.path, { recursive: true, force: true });
}

/** Finds the folders that an earlier process left, with the layers that their manifests name. Removes their views. */
export async function findCacheFolders(parent: string, memory: HeldMemory): Promise<readonly CacheFolder[]> {
  const found: CacheFolder[] = [];
  for (const repository of await foldersIn(parent)) {
    for (const name of await foldersIn(join(parent, repository))) {
      const [, epoch] = FOLDER_NAME.exec(name) ?? [];
      const id = parseUuid<RepositoryId>(repository);
      if (id === null || epoch === undefined) continue;
      const path = join(parent, repository, name);
      await rm(join(path, VIEWS), { recursive: true, force: true });
      const held = newHeldPacks(path, memory);
      found.push({ path, repository: id, shrinkEpoch: Number(epoch), present: await readManifest(path), held });
    }
  }
  return found;
}

async function foldersIn(path: string): Promise<readonly string[]> {
  const entries = await readdir(path, { withFileTypes: true });
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/**
 * Whether every pack and index that is not in memory is still there, with its exact size, and what makes it a
 * repository.
 */
export async function isWhole(folder: CacheFolder): Promise<boolean> {
  const own = await Promise.all(['HEAD', 'refs', 'objects/pack'].map((name) => sizeOf(join(folder.path, name))));
  if (own.includes(null)) return false;
  const checks = [...folder.present.values()].map(async ({ pack, packBytes, idxBytes }) => {
    if (folder.held.get(pack) !== null) return true;
    const [packFile, idxFile] = await Promise.all([
      sizeOf(packPath(folder, pack, 'pack')),
      sizeOf(packPath(folder, pack, 'idx')),
    ]);
    return packFile === packBytes && idxFile === idxBytes;
  });
  return (await Promise.all(checks)).every((whole) => whole);
}

/** False when somebody has removed the folder. */
export function isThere(folder: CacheFolder): boolean {
  // Called at every opening, and answered from the kernel's memory: an asynchronous call would take longer.
  return statSync(join(folder.path, 'objects', 'pack'), { throwIfNoEntry: false }) !== undefined;
}

/**
 * Moves a checked pack into the folder, the index last: git finds packs by their index. A pack of the same name has
 * the same bytes, since its name is their checksum, so it may be replaced while it is read.
 */
export async function addPack(folder: CacheFolder, layer: Layer, files: PackFiles): Promise<PresentLayer> {
  const { id, sha256, pack } = layer;
  const { packBytes, idxBytes, revPath } = files;
  await Promise.all([
    rename(files.packPath, packPath(folder, pack, 'pack')),
    revPath === undefined ? null : renameIfThere(revPath, packPath(folder, pack, 'rev')),
  ]);
  await rename(files.idxPath, packPath(folder, pack, 'idx'));
  return addPresent(folder, { id, sha256, pack, packBytes, idxBytes });
}

/** Does what `addPack` does, for a pack of these bytes, whose files it writes. */
export async function writePack(folder: CacheFolder, layer: Layer, bytes: PackBytes): Promise<PresentLayer> {
  await writePackFiles(packBase(folder.path, layer.pack), bytes);
  return addPresent(folder, presentOf(layer, bytes));
}

function presentOf({ id, sha256, pack }: Pick<Layer, 'id' | 'sha256' | 'pack'>, bytes: PackBytes): PresentLayer {
  return { id, sha256, pack, packBytes: bytes.pack.length, idxBytes: bytes.idx.length };
}

function addPresent(folder: CacheFolder, present: PresentLayer): PresentLayer {
  folder.present.set(present.id, present);
  return present;
}

/** Does what `addPack` does, for a small pack that comes onto the disk when git needs it. */
export function holdPack(
  folder: CacheFolder,
  layer: Pick<Layer, 'id' | 'sha256' | 'pack'>,
  bytes: PackBytes,
): PresentLayer {
  const present = presentOf(layer, bytes);
  folder.held.add(layer.pack, bytes, present);
  return addPresent(folder, present);
}

/**
 * Writes the packs that are in memory only. The caller has a lease on the folder. Rejects with an ObjectDatabaseError.
 */
export async function writeHeld(folder: CacheFolder): Promise<void> {
  const { held } = folder;
  if (held.count === 0) return;
  const layers = await held.write();
  try {
    await recordLayers(folder, layers);
  } catch (error) {
    held.memory.options.onFault(error);
  }
}

async function renameIfThere(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (cause) {
    if (!isMissing(cause)) throw cause;
  }
}

/** Adds layers to the manifest. A layer that the manifest does not name is fetched again after a restart. */
export async function recordLayers(folder: CacheFolder, layers: readonly PresentLayer[]): Promise<void> {
  if (layers.length === 0) return;
  const lines = layers.map((layer) => `${JSON.stringify(layer)}\n`);
  await appendFile(join(folder.path, MANIFEST), lines.join(''));
}

/**
 * Adds layers of one folder to another by hard-linking their packs: either folder can be removed without the other.
 * Packs that are in memory are so in both.
 */
export async function copyLayers(from: CacheFolder, to: CacheFolder, layers: readonly PresentLayer[]): Promise<void> {
  const written: PresentLayer[] = [];
  for (const layer of layers) {
    const bytes = from.held.get(layer.pack);
    if (bytes === null) written.push(layer);
    else holdPack(to, layer, bytes);
  }
  await linkLayers(from, to, written);
}

async function linkLayers(from: CacheFolder, to: CacheFolder, layers: readonly PresentLayer[]): Promise<void> {
  const sizes = new Map(layers.map(({ pack, packBytes }) => [pack, packBytes]));
  for (const [pack, packBytes] of sizes) {
    const extensions = packBytes < REVERSE_INDEX_PACK_BYTES_MIN ? SMALL_PACK_FILES : PACK_FILES;
    for (const extension of extensions) {
      const target = packPath(to, pack, extension);
      await link(packPath(from, pack, extension), target).catch((cause: unknown) => {
        // The reverse index may be missing, and two layers may have the same pack.
        const isOptional = isMissing(cause) && extension === 'rev';
        if (!isOptional && !(cause instanceof Error && 'code' in cause && cause.code === 'EEXIST')) throw cause;
      });
    }
  }
  for (const layer of layers) to.present.set(layer.id, layer);
  await recordLayers(to, layers);
}

export interface CachePaths {
  readonly repositories: string;
  readonly incoming: string;
  readonly trash: string;
}

/**
 * Makes the cache's directories and removes what an earlier process left half-done. Its folders stay only if the
 * machine has not restarted since: nothing here is synced, so after a power cut a file may be shorter than its manifest
 * says.
 */
export async function startCache(directory: string, paths: CachePaths): Promise<void> {
  for (const path of [paths.repositories, paths.incoming, paths.trash]) await mkdir(path, { recursive: true });
  const bootFile = join(directory, 'boot');
  const boot = await bootId();
  const before = await readFile(bootFile, 'utf8').catch(() => null);
  if (boot === null || boot !== before) {
    await rename(paths.repositories, join(paths.trash, randomUUID()));
    await mkdir(paths.repositories);
  }
  await writeFile(bootFile, boot ?? '');
  for (const path of [paths.incoming, paths.trash]) {
    for (const name of await readdir(path)) await rm(join(path, name), { recursive: true, force: true });
  }
}

/** Identifies this boot of the machine; null where the system has no such id. */
async function bootId(): Promise<string | null> {
  return readFile('/proc/sys/kernel/random/boot_id', 'utf8').then(
    (text) => text.trim(),
    () => null,
  );
}

async function readManifest(path: string): Promise<Map<LayerId, PresentLayer>> {
  const present = new Map<LayerId, PresentLayer>();
  const text = await readFile(join(path, MANIFEST), 'utf8').catch(missing(''));
  for (const line of text.split('\n')) {
    const layer = parseLine(line);
    if (layer !== null) present.set(layer.id, layer);
  }
  return present;
}

/** Null for a line that was cut short, or onto whose cut end another was written: their layers are fetched again. */
function parseLine(line: string): PresentLayer | null {
  try {
    const { id, sha256, pack, packBytes, idxBytes } = JSON.parse(line) as Partial<PresentLayer>;
    const whole = typeof id === 'string' && typeof sha256 === 'string' && typeof pack === 'string';
    const sized = typeof packBytes === 'number' && typeof idxBytes === 'number';
    return whole && sized ? { id, sha256, pack, packBytes, idxBytes } : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

async function sizeOf(path: string): Promise<number | null> {
  return stat(path).then(({ size }) => size, missing(null));
}

function missing<Value>(value: Value): (cause: unknown) => Value {
  return (cause) => {
    if (isMissing(cause)) return value;
    throw cause;
  };
}

/** Whether an error, or one of its causes, is a missing file. */
export function isCausedByMissing(error: unknown): boolean {
  return isMissing(error) || (error instanceof Error && error.cause !== undefined && isCausedByMissing(error.cause));
}

export function isMissing(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && (cause.code === 'ENOENT' || cause.code === 'ENOTDIR');
}
