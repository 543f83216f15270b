/**
 * Reads some lines of a file that is too large to be read whole.
 *
 * Invariants: memory is bounded, whatever is in the file. Where lines begin is kept by blob, which never changes, so
 * that only the first reader reads a file to its end. The read ends with its request.
 */
import type { ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { type FileBytes, readFile, type WantedContents } from './read-contents.ts';
import type { ObjectsContext } from './repository-view.ts';

/** Where the lines of a file begin. */
export interface LineIndex {
  /** Whether the file is free of NUL. */
  readonly isText: boolean;
  readonly lines: number;
  /** The offsets of each `INDEXED_LINES`th line: the first, and so on. */
  readonly offsets: readonly number[];
}

/** From one line in the index to the next. */
export const INDEXED_LINES = 4_096;

/** A cache, bounded in memory. */
export interface KnownLines {
  get(id: ObjectId): LineIndex | undefined;
  set(id: ObjectId, index: LineIndex): void;
}

export interface LinesContext extends ObjectsContext {
  readonly knownLines: KnownLines;
}

export interface WantedLines extends WantedContents {
  /** The number of the first line; the last of the file if it has fewer. */
  readonly from: number;
  /** How many bytes are read from the first line on. */
  readonly bytesMax: number;
  readonly signal: AbortSignal;
}

export interface ReadLines {
  readonly id: ObjectId;
  /** How many lines the file has; null if it is not text, and then there are no bytes. */
  readonly total: number | null;
  readonly from: number;
  /** Begin with the first line, and end anywhere. */
  readonly bytes: Uint8Array;
}

/** Refused as `readFile` is. */
export async function readLines(
  context: LinesContext,
  repository: FoundRepository,
  { from, bytesMax, signal, ...wanted }: WantedLines,
): Promise<ReadLines | { readonly refused: Refusal }> {
  const file = await readFile(context, repository, wanted);
  if ('refused' in file) return file;
  const { id, content, sizeBytes } = file;
  try {
    const index = context.knownLines.get(id) ?? (await indexLines(chunksOf(content, 0, sizeBytes), signal));
    context.knownLines.set(id, index);
    if (!index.isText) return { id, total: null, from: 1, bytes: new Uint8Array() };
    const first = Math.min(Math.max(1, from), Math.max(1, index.lines));
    const mark = Math.floor((first - 1) / INDEXED_LINES);
    const start = index.offsets[mark] ?? 0;
    const skipped = first - 1 - mark * INDEXED_LINES;
    const bytes = await bytesFrom(chunksOf(content, start, sizeBytes), skipped, bytesMax, signal);
    return { id, total: index.lines, from: first, bytes };
  } finally {
    if (content.kind === 'streamed') content.close();
  }
}

async function* chunksOf(content: FileBytes, start: number, end: number): AsyncGenerator<Uint8Array> {
  if (content.kind === 'held') yield content.bytes.subarray(start, end);
  else if (start < end) yield* content.chunks({ start, end });
}

const LINE_FEED = 0x0a;

export async function indexLines(chunks: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<LineIndex> {
  const offsets = [0];
  let feeds = 0;
  let read = 0;
  let endsInFeed = true;
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    for (let at = 0; at < chunk.length; at += 1) {
      const byte = chunk[at];
      if (byte === 0) return { isText: false, lines: 0, offsets: [] };
      if (byte !== LINE_FEED) continue;
      feeds += 1;
      if (feeds % INDEXED_LINES === 0) offsets.push(read + at + 1);
    }
    if (chunk.length > 0) endsInFeed = chunk.at(-1) === LINE_FEED;
    read += chunk.length;
  }
  return { isText: true, lines: endsInFeed ? feeds : feeds + 1, offsets };
}

/** Copies bytes, because a chunk may keep a larger buffer in memory. */
async function bytesFrom(
  chunks: AsyncIterable<Uint8Array>,
  skipped: number,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const bytes = new Uint8Array(bytesMax);
  let left = skipped;
  let length = 0;
  for await (const chunk of chunks) {
    signal.throwIfAborted();
    let at = 0;
    for (; left > 0 && at < chunk.length; at += 1) if (chunk[at] === LINE_FEED) left -= 1;
    if (left > 0) continue;
    const taken = chunk.subarray(at, at + bytesMax - length);
    bytes.set(taken, length);
    length += taken.length;
    if (length === bytesMax) break;
  }
  return bytes.subarray(0, length);
}
