/**
 * A layer as a tar (docs/architecture.md, Storage): `objects/pack/pack-<hex>.pack` and `.idx`, `updates`, `layer.json`,
 * in that order, ustar (POSIX.1-1988) with times and owners of zero.
 *
 * Invariants: the same pack, updates and description always give the same bytes.
 */
import { createHash } from 'node:crypto';
import type { LayerContent } from '../../../core/ports/object-database.ts';
import { type FilePages, fileChunks, type PagedFile } from '../packs/file-pages.ts';

const BLOCK_BYTES = 512;
/** The size in a tar header has eleven octal digits. Internal: no pack of a push or of a compaction is as large. */
const ENTRY_BYTES_MAX = 8 ** 11 - 1;
/**
 * Layers up to this size are built in memory once; larger ones are read from their files each time. Internal: both ways
 * give the same bytes.
 */
const WHOLE_LAYER_BYTES_MAX = 1024 * 1024;

export function packEntryName(pack: string, extension: 'pack' | 'idx'): string {
  return `objects/pack/pack-${pack}.${extension}`;
}

export interface LayerSource {
  /** The pack's checksum, hex. */
  readonly pack: string;
  readonly packFile: PagedFile;
  readonly idxFile: PagedFile;
  readonly updates: string;
  readonly description: string;
}

/** The tar of a layer. The caller must keep the pack until the last `body` was read. */
export async function layerContent(pages: FilePages, source: LayerSource): Promise<LayerContent> {
  const { packFile, idxFile } = source;
  const updates = Buffer.from(source.updates);
  const description = Buffer.from(source.description);
  const entries: readonly TarEntry[] = [
    { name: packEntryName(source.pack, 'pack'), sizeBytes: packFile.sizeBytes, content: packFile },
    { name: packEntryName(source.pack, 'idx'), sizeBytes: idxFile.sizeBytes, content: idxFile },
    { name: 'updates', sizeBytes: updates.length, content: updates },
    { name: 'layer.json', sizeBytes: description.length, content: description },
  ];
  let sizeBytes = 2 * BLOCK_BYTES;
  for (const entry of entries) sizeBytes += BLOCK_BYTES + entry.sizeBytes + paddingBytes(entry.sizeBytes);
  if (sizeBytes > WHOLE_LAYER_BYTES_MAX) return hashedAsRead(sizeBytes, () => tarChunks(entries));
  const whole = Buffer.alloc(sizeBytes);
  let at = 0;
  for (const entry of entries) {
    tarHeader(entry).copy(whole, at);
    const { content } = entry;
    (Buffer.isBuffer(content) ? content : await pages.read(content, 0, content.sizeBytes)).copy(
      whole,
      at + BLOCK_BYTES,
    );
    at += BLOCK_BYTES + entry.sizeBytes + paddingBytes(entry.sizeBytes);
  }
  const body = async function* () {
    yield whole;
  };
  const sha256 = createHash('sha256').update(whole).digest('hex');
  return { sizeBytes, body, sha256: () => sha256 };
}

/** A large body is read from its files once, to be stored. */
function hashedAsRead(sizeBytes: number, chunks: () => AsyncIterable<Buffer>): LayerContent {
  let sha256: string | null = null;
  return {
    sizeBytes,
    body: async function* () {
      const hash = createHash('sha256');
      let leftBytes = sizeBytes;
      for await (const chunk of chunks()) {
        hash.update(chunk);
        leftBytes -= chunk.length;
        if (leftBytes === 0) sha256 = hash.digest('hex');
        yield chunk;
      }
    },
    sha256: () => {
      if (sha256 === null) throw new TypeError('The SHA-256 of a layer is known once its body was read');
      return sha256;
    },
  };
}

interface TarEntry {
  readonly name: string;
  readonly sizeBytes: number;
  /** The bytes, or the file that holds them. */
  readonly content: Buffer | PagedFile;
}

/** What lies between two files comes as one chunk: each write of a layer waits for a thread. */
async function* tarChunks(entries: readonly TarEntry[]): AsyncGenerator<Buffer> {
  let between: Buffer[] = [];
  for (const entry of entries) {
    between.push(tarHeader(entry));
    if (Buffer.isBuffer(entry.content)) {
      between.push(entry.content);
    } else {
      yield Buffer.concat(between);
      between = [];
      yield* fileChunks(entry.content);
    }
    between.push(Buffer.alloc(paddingBytes(entry.sizeBytes)));
  }
  yield Buffer.concat([...between, Buffer.alloc(2 * BLOCK_BYTES)]);
}

function tarHeader({ name, sizeBytes }: TarEntry): Buffer {
  if (sizeBytes > ENTRY_BYTES_MAX) throw new RangeError(`${name} has ${sizeBytes} bytes, too many for a tar entry`);
  const header = Buffer.alloc(BLOCK_BYTES);
  header.write(name, 0, 100, 'latin1');
  header.write('0000644\0', 100, 'latin1');
  header.write('0000000\0', 108, 'latin1');
  header.write('0000000\0', 116, 'latin1');
  header.write(`${sizeBytes.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
  header.write('00000000000\0', 136, 'latin1');
  // The checksum is computed with spaces in its own field.
  header.write('        ', 148, 'latin1');
  header.write('0', 156, 'latin1');
  header.write('ustar\0', 257, 'latin1');
  header.write('00', 263, 'latin1');
  let sum = 0;
  for (const byte of header) sum += byte;
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return header;
}

function paddingBytes(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

export class LayerFormatError extends Error {
  override readonly name = 'LayerFormatError';
}

/** The parts of a tar in order: an entry's name, then its bytes in chunks. */
export type TarPart = { readonly entry: string } | { readonly bytes: Uint8Array };

/** Splits a tar into its parts. Reads and drops bytes after the end marker, so that the caller can hash them too. */
export async function* readTar(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TarPart> {
  let header = Buffer.alloc(0);
  let contentLeft = 0;
  let paddingLeft = 0;
  let ended = false;
  for await (const chunk of chunks) {
    let rest = chunk;
    while (rest.length > 0 && !ended) {
      if (contentLeft > 0) {
        const bytes = rest.subarray(0, contentLeft);
        contentLeft -= bytes.length;
        rest = rest.subarray(bytes.length);
        yield { bytes };
      } else if (paddingLeft > 0) {
        const skipped = Math.min(paddingLeft, rest.length);
        paddingLeft -= skipped;
        rest = rest.subarray(skipped);
      } else {
        const missing = BLOCK_BYTES - header.length;
        header = Buffer.concat([header, rest.subarray(0, missing)]);
        rest = rest.subarray(missing);
        if (header.length < BLOCK_BYTES) break;
        if (header[0] === 0) {
          ended = true;
          break;
        }
        contentLeft = Number.parseInt(header.toString('latin1', 124, 136), 8);
        if (!Number.isSafeInteger(contentLeft) || contentLeft < 0)
          throw new LayerFormatError('A tar entry has no size');
        paddingLeft = paddingBytes(contentLeft);
        const nameEnd = header.indexOf(0);
        yield { entry: header.toString('latin1', 0, Math.min(nameEnd < 0 ? 100 : nameEnd, 100)) };
        header = Buffer.alloc(0);
      }
    }
  }
  if (!ended) throw new LayerFormatError('A tar ends before its end marker');
}
