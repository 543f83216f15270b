/**
 * Stores layers as files under one folder: the key is the path.
 *
 * Invariants: `put` resolves only after fsync of the file and of every folder that leads to it; a key appears whole
 * or not at all, by link(2), which also decides which of two concurrent puts stores it; other users of the machine
 * reach no folder and no file; a half-written file says who writes it, and none of a living process counts as left.
 */
import { randomUUID } from 'node:crypto';
import { chmod, type FileHandle, link, mkdir, open, readdir, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { type CacheSize, showCache } from '../../core/kernel/shown-caches.ts';
import { type ByteRange, type IncomingLayer, type LayerStore, LayerStoreError } from '../../core/ports/layer-store.ts';
import { type LayerKey, layerKey, type StoredLayer } from '../../core/repository/layer.ts';

export interface FilesystemLayerStoreOptions {
  /** Created when missing. Several processes may share it. */
  readonly directory: string;
  /** Tells which process writes a file, and whether it has ended. Absent: no end is certain but by the time. */
  readonly writers?: Writers;
}

export interface Writers {
  /** The mark of this process: `[A-Za-z0-9-]`. */
  readonly mine: string;
  /** True only if the process with the mark has ended for certain. */
  hasEnded(mark: string): Promise<boolean>;
}

const NO_WRITERS: Writers = { mine: 'unknown', hasEnded: async () => false };

/** No key begins with it, since no component of a key starts with a dot. */
const INCOMING = '.incoming';
/**
 * A put takes minutes at most, so a process that died has left older files, wherever it ran. Internal: only files that
 * dead processes left are so old.
 */
const INCOMING_AGE_MS_MAX = 24 * 60 * 60_000;
/**
 * The name of an incoming file: who writes it, a random id, and the key, whose slashes are tildes. No key has a tilde.
 */
const INCOMING_NAME = /^([A-Za-z0-9-]+)~[0-9a-f-]{36}(?:~(.+))?$/;
/**
 * Longer keys are left out, since a name has 255 bytes at most. Internal: the file serves without the key in its name
 * as well.
 */
const NAMED_KEY_LENGTH_MAX = 150;
/** Large chunks stream fastest: 1.7 GB/s was measured. */
const READ_CHUNK_BYTES = 1024 * 1024;
/** For the server's user and its group: nodes that share the folder may run as different users. */
const FOLDER_MODE = 0o750;
const FILE_MODE = 0o640;
const OTHERS_BITS = 0o007;

/** Opens the folder, creates it durably when it is missing, and removes half-written files of dead processes. */
export async function createFilesystemLayerStore(options: FilesystemLayerStoreOptions): Promise<LayerStore> {
  const root = resolve(options.directory);
  const incoming = join(root, INCOMING);
  const writers = options.writers ?? NO_WRITERS;
  const folders = durableFolders(root);
  try {
    const made = await mkdir(incoming, { recursive: true, mode: FOLDER_MODE });
    // A new folder is durable only when the folder that holds it is synced, up to the one above the topmost new one.
    for (let level = incoming; made !== undefined && level !== dirname(made); ) {
      level = dirname(level);
      await syncFolder(level);
    }
    await shutOut(root);
    await sweep(incoming);
  } catch (cause) {
    throw storeError(cause);
  }
  const pathOf = (key: LayerKey) => join(root, layerKey(key));
  return {
    ...readFilesystemLayers(options),
    put: (key, body, sizeBytes) =>
      put({ path: pathOf(key), temporary: temporaryName(incoming, writers, key), folders }, body, sizeBytes),
    delete: async (key) => {
      const path = pathOf(key);
      if (await onDisk(removeFile(path))) await onDisk(syncFolder(dirname(path)));
    },
    now: () => onDisk(fileSystemTime(temporaryName(incoming, writers))),
    incoming: {
      list: () => listIncoming(incoming, writers),
      remove: async ({ name }) => {
        if (name.includes('/') || name === '..') throw new TypeError(`Not the name of an incoming file: ${name}`);
        await onDisk(removeFile(join(incoming, name)));
      },
    },
  };
}

/** Reads a folder of layers, and writes nothing into it. */
export function readFilesystemLayers(options: FilesystemLayerStoreOptions): Pick<LayerStore, 'get' | 'head' | 'list'> {
  const root = resolve(options.directory);
  const pathOf = (key: LayerKey) => join(root, layerKey(key));
  return {
    get: (key, range) => get(key, pathOf(key), range),
    head: async (key) => {
      const facts = await factsOf(pathOf(key));
      return facts === null ? null : { key, ...facts };
    },
    list: (prefix) => list(root, prefix),
  };
}

interface Target {
  readonly path: string;
  readonly temporary: string;
  readonly folders: DurableFolders;
}

async function put(target: Target, body: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<'stored' | 'exists'> {
  const { path, temporary, folders } = target;
  let file: FileHandle;
  try {
    file = await open(temporary, 'wx', FILE_MODE);
  } catch (cause) {
    throw storeError(cause);
  }
  try {
    try {
      await writeBody(file, body, sizeBytes);
      await onDisk(Promise.all([file.sync(), folders.ensure(dirname(path))]));
    } finally {
      await file.close();
    }
    const outcome = await onDisk(publish(temporary, path, folders));
    // Also when the key existed: the put that stored it may not have reached this line yet.
    await onDisk(syncFolder(dirname(path)));
    return outcome;
  } finally {
    await onDisk(removeFile(temporary));
  }
}

async function writeBody(file: FileHandle, body: AsyncIterable<Uint8Array>, sizeBytes: number): Promise<void> {
  let written = 0;
  for await (const chunk of body) {
    if (written + chunk.byteLength > sizeBytes) {
      throw new TypeError(`The body of a layer is longer than the ${sizeBytes} bytes announced`);
    }
    for (let offset = 0; offset < chunk.byteLength; ) {
      const { bytesWritten } = await onDisk(file.write(chunk, offset, chunk.byteLength - offset));
      offset += bytesWritten;
    }
    written += chunk.byteLength;
  }
  if (written !== sizeBytes) {
    throw new TypeError(`The body of a layer has ${written} bytes instead of the ${sizeBytes} announced`);
  }
}

/** Links the file to its final path, whose folder was ensured, unless a file is there already. */
async function publish(temporary: string, path: string, folders: DurableFolders): Promise<'stored' | 'exists'> {
  try {
    await link(temporary, path);
    return 'stored';
  } catch (cause) {
    if (hasCode(cause, 'EEXIST')) return 'exists';
    if (!isMissing(cause)) throw cause;
  }
  // Somebody removed the folder since it was last used.
  const folder = dirname(path);
  folders.forget(folder);
  await folders.ensure(folder);
  try {
    await link(temporary, path);
    return 'stored';
  } catch (cause) {
    if (hasCode(cause, 'EEXIST')) return 'exists';
    throw cause;
  }
}

interface DurableFolders {
  /** Creates a folder with its parents, and makes their entries survive a power cut. */
  ensure(folder: string): Promise<void>;
  forget(folder: string): void;
}

/**
 * Bounds the memory for known folders. A forgotten folder costs one fsync a level when it is next used. Internal: a
 * forgotten folder is synced again.
 */
const KNOWN_FOLDERS_MAX = 10_000;

function sizeOfFolders({ size }: ReadonlySet<string>): CacheSize {
  return { taken: size, max: KNOWN_FOLDERS_MAX };
}

function durableFolders(root: string): DurableFolders {
  const known = new Set<string>();
  const looks = showCache('layer_folders', 'entries', known, sizeOfFolders);
  return {
    ensure: async (folder) => {
      if (known.has(folder)) {
        looks.hits += 1;
        return;
      }
      looks.misses += 1;
      await mkdir(folder, { recursive: true, mode: FOLDER_MODE });
      // A concurrent put may have created a level and not synced it yet, so this syncs every level.
      const levels: string[] = [];
      for (let level = folder; level !== root; level = dirname(level)) levels.push(dirname(level));
      await Promise.all(levels.map(syncFolder));
      if (known.size >= KNOWN_FOLDERS_MAX) known.clear();
      known.add(folder);
    },
    forget: (folder) => {
      known.delete(folder);
    },
  };
}

async function get(key: LayerKey, path: string, range?: ByteRange): Promise<AsyncIterable<Uint8Array>> {
  const facts = await factsOf(path);
  if (facts === null) throw notFound(key);
  const { sizeBytes } = facts;
  const { start, end } = range ?? { start: 0, end: sizeBytes };
  if (range !== undefined && !(Number.isSafeInteger(start) && start >= 0 && start < Math.min(end, sizeBytes))) {
    throw new LayerStoreError('range-not-satisfiable', `${key} holds ${sizeBytes} bytes, not ${start} to ${end}`);
  }
  return read(key, path, start, Math.min(end, sizeBytes));
}

async function* read(key: LayerKey, path: string, start: number, end: number): AsyncGenerator<Uint8Array> {
  let file: FileHandle;
  try {
    file = await open(path, 'r');
  } catch (cause) {
    throw isMissing(cause) ? notFound(key) : storeError(cause);
  }
  try {
    for (let position = start; position < end; ) {
      const chunk = new Uint8Array(Math.min(READ_CHUNK_BYTES, end - position));
      const { bytesRead } = await onDisk(file.read(chunk, 0, chunk.byteLength, position));
      if (bytesRead === 0) throw new LayerStoreError('layer-store-unavailable', `${key} ended at byte ${position}`);
      position += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function* list(root: string, prefix: string): AsyncGenerator<StoredLayer> {
  // The part of the prefix up to its last slash names a folder; the rest filters the names in that folder.
  const start = prefix.slice(0, prefix.lastIndexOf('/') + 1);
  if (start.split('/').includes('..')) return;
  const pending = [start];
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    const entries = await entriesOf(join(root, folder));
    for (const entry of entries) {
      const name = `${folder}${entry.name}`;
      if (entry.name.startsWith('.')) continue;
      if (entry.isDirectory()) {
        if (name.startsWith(prefix) || prefix.startsWith(`${name}/`)) pending.push(`${name}/`);
        continue;
      }
      const facts = name.startsWith(prefix) ? await factsOf(join(root, name)) : null;
      if (facts !== null) yield { key: layerKey(name), ...facts };
    }
  }
}

async function entriesOf(folder: string) {
  try {
    return await readdir(folder, { withFileTypes: true });
  } catch (cause) {
    if (isMissing(cause)) return [];
    throw storeError(cause);
  }
}

function temporaryName(incoming: string, { mine }: Writers, key: string = ''): string {
  const named = key === '' || key.length > NAMED_KEY_LENGTH_MAX ? '' : `~${key.replaceAll('/', '~')}`;
  return join(incoming, `${mine}~${randomUUID()}${named}`);
}

/** Removes what is so old that no process writes it. */
async function sweep(incoming: string): Promise<void> {
  for await (const { name, isLeft } of listIncoming(incoming, NO_WRITERS)) {
    if (isLeft) await removeFile(join(incoming, name));
  }
}

async function* listIncoming(incoming: string, writers: Writers): AsyncGenerator<IncomingLayer> {
  for (const { name } of await entriesOf(incoming)) {
    // Read before its writer is looked for: what a living process writes now is not taken for an old file.
    const facts = await factsOf(join(incoming, name));
    // A put of another process has removed the file.
    if (facts === null) continue;
    const [, mark = '', keyText = ''] = INCOMING_NAME.exec(name) ?? [];
    const isOld = facts.storedAt < timestamp(new Date(Date.now() - INCOMING_AGE_MS_MAX).toISOString());
    const isLeft = isOld || (await writers.hasEnded(mark));
    yield { name, key: keyNamed(keyText), sizeBytes: facts.sizeBytes, at: facts.storedAt, isLeft };
  }
}

/** Null for a text that names no key: anybody may have put the file there. */
function keyNamed(text: string): LayerKey | null {
  try {
    return layerKey(text.replaceAll('~', '/'));
  } catch {
    return null;
  }
}

/**
 * Keeps other users of the machine out of a folder that was made before: what is below it is then beyond their reach.
 */
async function shutOut(folder: string): Promise<void> {
  const { mode, uid } = await stat(folder);
  // Only its owner may change it: where the folder is somebody else's, its mode is theirs to choose.
  if ((mode & OTHERS_BITS) === 0 || uid !== process.getuid?.()) return;
  await chmod(folder, mode & ~OTHERS_BITS);
}

/** Makes the names in a folder survive a power cut (fsync(2) of a file does not cover its folder's entry). */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The time that the file system gives a new file: the server of a shared one may have another clock than this node. */
async function fileSystemTime(probe: string): Promise<Timestamp> {
  const file = await open(probe, 'wx', FILE_MODE);
  try {
    // Before it is read, so that fewer of them stay if the process is killed.
    await removeFile(probe);
    return timestamp((await file.stat()).mtime.toISOString());
  } finally {
    await file.close();
  }
}

/** Resolves true when there was such a file. */
async function removeFile(path: string): Promise<boolean> {
  try {
    await unlink(path);
    return true;
  } catch (cause) {
    if (isMissing(cause)) return false;
    throw cause;
  }
}

async function factsOf(path: string): Promise<Omit<StoredLayer, 'key'> | null> {
  try {
    const found = await stat(path);
    return found.isFile() ? { sizeBytes: found.size, storedAt: timestamp(found.mtime.toISOString()) } : null;
  } catch (cause) {
    if (isMissing(cause)) return null;
    throw storeError(cause);
  }
}

async function onDisk<Result>(work: Promise<Result>): Promise<Result> {
  try {
    return await work;
  } catch (cause) {
    throw storeError(cause);
  }
}

function notFound(key: LayerKey): LayerStoreError {
  return new LayerStoreError('layer-not-found', `There is no layer ${key}`);
}

function storeError(cause: unknown): LayerStoreError {
  if (cause instanceof LayerStoreError) return cause;
  const full = hasCode(cause, 'ENOSPC') || hasCode(cause, 'EDQUOT');
  const message = cause instanceof Error ? cause.message : String(cause);
  return new LayerStoreError(full ? 'layer-store-full' : 'layer-store-unavailable', message, { cause });
}

function isMissing(cause: unknown): boolean {
  return hasCode(cause, 'ENOENT') || hasCode(cause, 'ENOTDIR');
}

function hasCode(cause: unknown, code: string): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === code;
}
