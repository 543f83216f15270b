/**
 * A layer's tar: `objects/pack/pack-*.{pack,idx}`, `updates` and `layer.json` (architecture, Storage).
 *
 * Must stay true: the bytes are a function of the content alone, so a layer can be named by its digest; what is
 * unpacked is only what this program packs: any other entry, or another digest, is corruption.
 */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { extract } from 'tar-stream';
import { canonicalJson } from '../../core/kernel/json.ts';
import { type Layer, type LayerContent, ObjectDatabaseError } from '../../core/ports/object-database.ts';

const BLOCK_BYTES = 512;
/** Two empty blocks end a tar: tar(5). */
const END_BYTES = 2 * BLOCK_BYTES;
const READ_CHUNK_BYTES = 1024 * 1024;

interface Entry {
  readonly name: string;
  readonly sizeBytes: number;
  open(): Readable;
}

/** The layer of a pack that lies, with its index, in `packDirectory`. Reads it once for the digest. */
export async function layerContent(
  packDirectory: string,
  packName: string,
  updates: readonly string[],
  description: { readonly [key: string]: string | number | null },
): Promise<LayerContent> {
  const entries = [
    textEntry('layer.json', `${canonicalJson({ ...description, pack: packName })}\n`),
    textEntry('updates', updates.map((line) => `${line}\n`).join('')),
    await fileEntry(packDirectory, `pack-${packName}.pack`),
    await fileEntry(packDirectory, `pack-${packName}.idx`),
  ];
  const body = (): AsyncIterable<Uint8Array> => tarOf(entries);
  const hash = createHash('sha256');
  for await (const chunk of body()) hash.update(chunk);
  const blocks = (bytes: number): number => Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES;
  const sizeBytes = entries.reduce((sum, entry) => sum + BLOCK_BYTES + blocks(entry.sizeBytes), END_BYTES);
  return { sizeBytes, sha256: hash.digest('hex'), body };
}

function textEntry(name: string, text: string): Entry {
  const bytes = Buffer.from(text, 'utf8');
  return { name, sizeBytes: bytes.length, open: () => Readable.from(bytes.length === 0 ? [] : [bytes]) };
}

async function fileEntry(directory: string, name: string): Promise<Entry> {
  const file = path.join(directory, name);
  const { size } = await stat(file);
  const open = (): Readable => createReadStream(file, { highWaterMark: READ_CHUNK_BYTES });
  return { name: `objects/pack/${name}`, sizeBytes: size, open };
}

async function* tarOf(entries: readonly Entry[]): AsyncGenerator<Uint8Array, void, undefined> {
  for (const entry of entries) {
    yield header(entry);
    for await (const chunk of entry.open()) {
      if (!(chunk instanceof Uint8Array)) throw new TypeError('A file is read as bytes');
      yield chunk;
    }
    const over = entry.sizeBytes % BLOCK_BYTES;
    if (over > 0) yield Buffer.alloc(BLOCK_BYTES - over);
  }
  yield Buffer.alloc(END_BYTES);
}

/**
 * A ustar header (POSIX.1-1988) that says nothing of when, where or by whom. Ours, since a library may change what
 * it writes into fields that no reader needs, and these bytes are hashed.
 */
function header(entry: Entry): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  block.write(entry.name, 0, 100, 'latin1');
  block.write(octal(0o644, 8), 100, 'latin1');
  block.write(octal(0, 8), 108, 'latin1');
  block.write(octal(0, 8), 116, 'latin1');
  block.write(octal(entry.sizeBytes, 12), 124, 'latin1');
  block.write(octal(0, 12), 136, 'latin1');
  // The checksum is taken with its own field full of spaces.
  block.write('        ', 148, 'latin1');
  block.write('0', 156, 'latin1');
  block.write('ustar\u000000', 257, 'latin1');
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

/**
 * Unpacks pack and index of a layer into a folder, checking the digest of the whole. What it leaves there must not
 * be used when it throws `layer-corrupt`.
 */
export async function unpackLayer(layer: Layer, body: AsyncIterable<Uint8Array>, directory: string): Promise<void> {
  const hash = createHash('sha256');
  const wanted = new Set([`objects/pack/pack-${layer.pack}.pack`, `objects/pack/pack-${layer.pack}.idx`]);
  const untar = extract();
  untar.on('entry', (header, stream, next) => {
    const target = wanted.delete(header.name)
      ? createWriteStream(path.join(directory, path.basename(header.name)))
      : null;
    if (target === null) {
      stream.resume();
      stream.on('end', next);
      return;
    }
    pipeline(stream, target).then(() => next(), next);
  });
  const digested = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
    for await (const chunk of body) {
      hash.update(chunk);
      yield chunk;
    }
  };
  try {
    await pipeline(digested(), untar);
  } catch (cause) {
    // A flipped byte may break the tar before the digest is known; what broke on disk or in the store did not.
    if (isSystemError(cause)) throw cause;
    throw corrupt(layer, cause);
  }
  if (hash.digest('hex') !== layer.sha256 || wanted.size > 0) throw corrupt(layer);
}

function isSystemError(cause: unknown): boolean {
  return cause instanceof Error && ('syscall' in cause || cause.name === 'LayerStoreError');
}

function corrupt(layer: Layer, cause?: unknown): ObjectDatabaseError {
  const text = `The bytes of layer ${layer.id} at ${layer.key} are not those its event names`;
  return new ObjectDatabaseError('layer-corrupt', text, cause === undefined ? {} : { cause });
}
