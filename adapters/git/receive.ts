/**
 * Taking a push's pack: quarantine, `git index-pack --strict`, and what can be asked of the result.
 *
 * Must stay true (git-path, Push): success is exit status 0 and nothing but `pack\t<40 hex>\n` on standard output;
 * the check sees the pack and the committed layers, nothing else; whatever happens the quarantine goes away.
 */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { ObjectId } from '../../core/kernel/ids.ts';
import type {
  CommittedObjects,
  Layer,
  PackRefusal,
  Quarantine,
  ReceivePackOptions,
} from '../../core/ports/object-database.ts';
import { type CatFile, createCatFile } from './cat-file.ts';
import { quoteAlternate } from './git-environment.ts';
import type { LayerCache, Lease } from './layer-cache.ts';
import { layerContent } from './layer-tar.ts';
import { refusalOf } from './pack-refusal.ts';
import { feed, type GitProcesses } from './processes.ts';
import { findTip, isAncestorOf } from './questions.ts';

/** Severities in configuration do nothing for index-pack; warnings become errors under `--strict`. */
const STRICT =
  '--strict=zeroPaddedFilemode=ignore,missingSpaceBeforeDate=ignore,badTimezone=ignore,badFilemode=ignore,' +
  'gitattributesSymlink=error,gitignoreSymlink=error,mailmapSymlink=error,gitmodulesParse=error';
const HEADER_BYTES = 12;
const TRAILER_BYTES = 20;
/** The longest a push may take, its upload included. */
const RECEIVE_WALL_MS_MAX = 2 * 60 * 60_000;
const QUESTION_WALL_MS_MAX = 60_000;
/** A second thread pays from here on. */
const THREADS_PACK_BYTES_MIN = 4 * 1024 * 1024;

export interface ReceiveParts {
  readonly cache: LayerCache;
  readonly processes: GitProcesses;
}

export async function receivePack(parts: ReceiveParts, options: ReceivePackOptions): Promise<Quarantine | PackRefusal> {
  const lease = await parts.cache.lease(options.objects);
  let directory: string | null = null;
  try {
    directory = await parts.cache.workshop();
    await mkdir(path.join(directory, 'pack'));
    const received = await readPack(parts, options, lease, directory);
    if ('refused' in received) return await abandon(received, directory, lease);
    return quarantine(parts, options, lease, directory, received);
  } catch (error) {
    const refused = diskFull(error);
    if (refused !== null) return abandon(refused, directory, lease);
    await abandon(null, directory, lease);
    throw error;
  }
}

async function abandon<Result>(result: Result, directory: string | null, lease: Lease): Promise<Result> {
  lease.release();
  if (directory !== null) await rm(directory, { recursive: true, force: true });
  return result;
}

function diskFull(error: unknown): PackRefusal | null {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const full = code === 'ENOSPC' || code === 'EDQUOT';
  return full ? { refused: 'disk-full', detail: 'no room left on the disk' } : null;
}

interface Received {
  /** Null for a pack of no objects, which git sends when the server has all of them. */
  readonly pack: string | null;
  readonly objectCount: number;
  readonly receivedBytes: number;
}

async function readPack(
  parts: ReceiveParts,
  options: ReceivePackOptions,
  lease: Lease,
  directory: string,
): Promise<Received | PackRefusal> {
  const source = counted(options.pack, options.packSizeBytesMax);
  const head = await takeHead(source);
  if ('refused' in head) return head;
  if (head.objectCount > options.objectCountMax) {
    const detail = `the pack holds ${head.objectCount} objects, more than ${options.objectCountMax}`;
    return { refused: 'pack-too-many-objects', detail };
  }
  if (head.objectCount === 0) return emptyPack(head.bytes, source);
  const indexed = await indexPack(parts, options, lease, directory, prepend(head.bytes, source.bytes));
  if (source.exceeded()) {
    return { refused: 'pack-too-large', detail: `the pack takes more than ${options.packSizeBytesMax} bytes` };
  }
  if ('refused' in indexed) return indexed;
  return { pack: indexed.pack, objectCount: head.objectCount, receivedBytes: source.count() };
}

interface Counted {
  readonly bytes: AsyncGenerator<Uint8Array, void, undefined>;
  readonly count: () => number;
  readonly exceeded: () => boolean;
}

/** Ends the pack at its bound: git then finds it truncated, and we know why. */
function counted(pack: AsyncIterable<Uint8Array>, bytesMax: number): Counted {
  let count = 0;
  const bytes = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of pack) {
      count += chunk.length;
      if (count > bytesMax) return;
      yield chunk;
    }
  };
  return { bytes: bytes(), count: () => count, exceeded: () => count > bytesMax };
}

/** `PACK`, a version, the number of objects: gitformat-pack(5). */
async function takeHead(
  source: Counted,
): Promise<{ readonly bytes: Buffer; readonly objectCount: number } | PackRefusal> {
  let bytes = Buffer.alloc(0);
  while (bytes.length < HEADER_BYTES) {
    const next = await source.bytes.next();
    if (next.done === true) return { refused: 'pack-broken', detail: 'the pack ends before its header does' };
    bytes = Buffer.concat([bytes, next.value]);
  }
  const version = bytes.readUInt32BE(4);
  if (bytes.toString('latin1', 0, 4) !== 'PACK' || (version !== 2 && version !== 3)) {
    return { refused: 'pack-broken', detail: 'what was sent is no pack of version 2 or 3' };
  }
  return { bytes, objectCount: bytes.readUInt32BE(8) };
}

async function emptyPack(head: Buffer, source: Counted): Promise<Received | PackRefusal> {
  const chunks: Uint8Array[] = [head];
  let total = head.length;
  for await (const chunk of source.bytes) {
    total += chunk.length;
    if (total > HEADER_BYTES + TRAILER_BYTES) break;
    chunks.push(chunk);
  }
  const whole = Buffer.concat(chunks);
  const digest = createHash('sha1').update(whole.subarray(0, HEADER_BYTES)).digest();
  if (total !== HEADER_BYTES + TRAILER_BYTES || !digest.equals(whole.subarray(HEADER_BYTES))) {
    return { refused: 'pack-broken', detail: 'the pack of no objects has a wrong checksum or length' };
  }
  return { pack: null, objectCount: 0, receivedBytes: total };
}

async function* prepend(
  first: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield first;
  yield* rest;
}

async function indexPack(
  { processes }: ReceiveParts,
  options: ReceivePackOptions,
  lease: Lease,
  directory: string,
  pack: AsyncIterable<Uint8Array>,
): Promise<{ readonly pack: string } | PackRefusal> {
  const threads = options.packSizeBytesMax >= THREADS_PACK_BYTES_MIN ? 2 : 1;
  const process = await processes.start({
    args: [
      'index-pack',
      '--stdin',
      '--fix-thin',
      '--report-end-of-input',
      `--max-input-size=${options.packSizeBytesMax}`,
      `--threads=${threads}`,
      STRICT,
    ],
    cwd: directory,
    env: quarantineEnvironment(lease, directory),
    config: NO_SYNC,
    key: options.objects.repository,
    wallMsMax: RECEIVE_WALL_MS_MAX,
    signal: options.signal,
    stdin: 'stream',
    stdout: 'collect',
    ...(options.onEndOfInput === undefined ? {} : { onNul: options.onEndOfInput }),
  });
  try {
    await feed(process, pack);
  } catch (error) {
    process.kill();
    await process.ended;
    throw error;
  }
  const end = await process.ended;
  options.signal.throwIfAborted();
  if (end.killed === 'timeout') return { refused: 'pack-too-costly', detail: 'checking the pack took too long' };
  const [, name] = /^pack\t([0-9a-f]{40})\n$/.exec(end.stdout ?? '') ?? [];
  if (end.code === 0 && name !== undefined) return { pack: name };
  if (end.code === 0) return { refused: 'pack-broken', detail: 'bytes follow the pack' };
  if (end.signal !== null && end.stderr.trim() === '') {
    return { refused: 'pack-too-costly', detail: 'the pack takes more memory, time or room than a push may' };
  }
  return refusalOf(end.stderr);
}

const NO_SYNC = [['core.fsync', 'none']] as const;

function quarantineEnvironment(lease: Lease, directory: string): Readonly<Record<string, string>> {
  return {
    GIT_DIR: lease.gitDir,
    GIT_OBJECT_DIRECTORY: directory,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quoteAlternate(lease.objectsDir),
  };
}

function quarantine(
  parts: ReceiveParts,
  options: ReceivePackOptions,
  lease: Lease,
  directory: string,
  received: Received,
): Quarantine {
  const packDir = path.join(directory, 'pack');
  const { repository } = options.objects;
  const env = quarantineEnvironment(lease, directory);
  const question = { cwd: directory, env, key: repository, wallMsMax: QUESTION_WALL_MS_MAX, signal: options.signal };
  let catFile: CatFile | null = null;
  const objects = (): CatFile => {
    const args = ['cat-file', '--batch-command'];
    catFile ??= createCatFile(() => parts.processes.start({ ...question, args, stdin: 'stream', stdout: 'stream' }));
    return catFile;
  };
  let ended = false;
  const end = async (): Promise<void> => {
    if (ended) return;
    ended = true;
    catFile?.close();
    lease.release();
    await rm(directory, { recursive: true, force: true });
  };
  return {
    pack: received.pack ?? '',
    objectCount: received.objectCount,
    receivedBytes: received.receivedBytes,
    tips: (ids) => Promise.all(ids.map((id) => findTip(objects(), id))),
    isAncestor: (ancestor: ObjectId, descendant: ObjectId) =>
      isAncestorOf(parts.processes, question, ancestor, descendant),
    layer: (updates, description) => layerContent(packDir, received.pack ?? '', updates, description),
    recheck: (objects_) => recheck(parts, options, objects_, packDir, received),
    async install(layer: Layer) {
      await parts.cache.install(repository, layer, packDir);
      await end();
    },
    discard: end,
  };
}

/** Indexes the same pack again, in a quarantine of its own, against another set of layers. */
async function recheck(
  parts: ReceiveParts,
  options: ReceivePackOptions,
  objects: CommittedObjects,
  packDir: string,
  received: Received,
): Promise<PackRefusal | null> {
  if (received.pack === null) return null;
  // `--fix-thin` appended the bases it needed, so the file is whole by itself.
  const pack = createReadStream(path.join(packDir, `pack-${received.pack}.pack`));
  const { onEndOfInput: _, ...rest } = options;
  const again = await receivePack(parts, { ...rest, objects, pack, packSizeBytesMax: Number.MAX_SAFE_INTEGER });
  if ('refused' in again) return again;
  await again.discard();
  return null;
}
