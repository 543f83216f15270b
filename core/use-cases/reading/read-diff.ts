/**
 * Reads what changed between two commits: the files with their lines, more files than have their lines on one page, or
 * one file alone, to its last line.
 *
 * Invariants: a diff is bounded in files, lines, bytes and time, and says which bound cut it. One that its time cut is
 * not kept: the next may be whole. One file is compared by the ids of its two blobs, so that neither its name nor the
 * other files matter.
 */
import { ALL_LINES, type ChangedFile, type Diff, type FileVersion } from '../../git/diff/diff.ts';
import { createDiffParser, DIFF_BOUNDS, type DiffBounds, type DiffParser } from '../../git/diff/diff-parser.ts';
import { createLineCountsParser } from '../../git/diff/line-counts.ts';
import { KIB, MIB } from '../../kernel/byte-units.ts';
import { refuse } from '../../kernel/decider.ts';
import { EMPTY_BLOB_ID, type ObjectId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Clock } from '../../ports/clock.ts';
import { isBeyondBounds, type ObjectReader } from '../../ports/object-database.ts';
import type { DiffOptions, ObjectHistory } from '../../ports/object-history.ts';
import { entryType } from './entry-at-path.ts';
import type { ObjectsContext } from './repository-view.ts';

/** How long git may take for a diff. */
export const DIFF_SPAN_MS = 5_000;
/**
 * Bytes that are read for one file of a diff, on whatever page of it. Internal: git has less memory and time than it
 * takes to print as much.
 */
const DIFF_FILE_READ_BYTES_MAX = 192 * MIB;

/** A cache, bounded in memory. */
export interface KnownDiffs {
  get(key: string): Diff | undefined;
  set(key: string, diff: Diff): void;
}

export interface DiffContext extends ObjectsContext {
  readonly knownDiffs: KnownDiffs;
  readonly clock: Pick<Clock, 'nextTurn'>;
}

export interface WantedDiff extends Pick<DiffOptions, 'ignoresWhiteSpace'> {
  readonly bounds?: Partial<DiffBounds>;
  /** Whether files whose lines are beyond the bounds have counts all the same, which takes git a second run. */
  readonly countsAll?: boolean;
  /** One file alone, counted from 0: the only one of the diff. Null for all files. */
  readonly file?: WantedFile | null;
}

export interface WantedFile {
  readonly index: number;
  /** Equal lines around those that differ. */
  readonly context: number;
}

type Reading = WantedDiff & { readonly signal: AbortSignal };
type Refused = { readonly refused: Refusal };

/**
 * Reads what changed between two commits; null is the empty tree. The caller has checked that they may be read. Refused
 * with `path-not-found` if there is no such file.
 */
export function readDiff(
  context: Omit<DiffContext, 'objects'>,
  reader: ObjectReader,
  from: ObjectId | null,
  to: ObjectId,
  reading: Reading,
): Promise<Diff | Refused> {
  const { file = null } = reading;
  return file === null
    ? readFiles(context, reader, from, to, reading)
    : readFile(context, reader, { from, to, file, reading });
}

/** Does what `readDiff` does for all files. */
export async function readFiles(
  { knownDiffs }: Pick<DiffContext, 'knownDiffs'>,
  { history }: { readonly history: Pick<ObjectHistory, 'diff'> },
  from: ObjectId | null,
  to: ObjectId,
  { bounds = {}, ignoresWhiteSpace = false, countsAll = false, signal }: Omit<Reading, 'file'>,
): Promise<Diff> {
  const within = { ...DIFF_BOUNDS, ...bounds };
  const key = JSON.stringify([from, to, ignoresWhiteSpace, countsAll, within]);
  const known = knownDiffs.get(key);
  if (known !== undefined) return known;
  const bounded = { signal, spanMs: DIFF_SPAN_MS };
  // The lines of files that are not on the first page are read for each file.
  const detail = within.filesBefore > 0 ? ('records' as const) : ('patches' as const);
  const parser = createDiffParser(within, { leavesOutFiles: ignoresWhiteSpace });
  const isWhole = await parse(parser, history.diff(from, to, { ...bounded, detail, ignoresWhiteSpace }));
  const parsed = parser.end(isWhole ? 'whole' : 'time');
  const isCounted = countsAll && (detail === 'records' || parsed.files.some(lacksCounts));
  const diff = isCounted
    ? await withCounts(parsed, detail, history.diff(from, to, { ...bounded, detail: 'counts', ignoresWhiteSpace }))
    : parsed;
  if (isWhole) knownDiffs.set(key, diff);
  return diff;
}

/** Returns false if git was ended because of its bounds. */
async function parse(parser: Pick<DiffParser, 'add'>, chunks: AsyncIterable<Uint8Array>): Promise<boolean> {
  try {
    for await (const chunk of chunks) {
      if (!parser.add(chunk)) break;
    }
    return true;
  } catch (error) {
    if (!isBeyondBounds(error)) throw error;
    return false;
  }
}

function lacksCounts({ additions, binary }: ChangedFile): boolean {
  return additions === null && !binary;
}

async function withCounts(diff: Diff, detail: 'records' | 'patches', chunks: AsyncIterable<Uint8Array>): Promise<Diff> {
  const counts = createLineCountsParser();
  const isWhole = await parse(counts, chunks);
  const files = diff.files.map((file): ChangedFile => {
    if (detail === 'patches' && !lacksCounts(file)) return file;
    const { additions = null, deletions = null } = counts.countsOf(file.path) ?? {};
    // Without patches nothing is known of the lines but their number.
    return { ...file, additions, deletions, cut: file.cut || detail === 'records' };
  });
  return isWhole
    ? { ...diff, files }
    : { ...diff, files, truncated: [...new Set([...diff.truncated, 'time' as const])] };
}

interface OneFile {
  readonly from: ObjectId | null;
  readonly to: ObjectId;
  readonly file: WantedFile;
  readonly reading: Reading;
}

async function readFile(
  { knownDiffs, clock }: Omit<DiffContext, 'objects'>,
  reader: ObjectReader,
  { from, to, file: { index, context }, reading }: OneFile,
): Promise<Diff | Refused> {
  const { bounds = {}, ignoresWhiteSpace = false, signal } = reading;
  const within = { ...DIFF_BOUNDS, readBytes: DIFF_FILE_READ_BYTES_MAX, ...bounds, files: 1, filesBefore: 0 };
  const key = JSON.stringify([from, to, ignoresWhiteSpace, index, context, within]);
  const known = knownDiffs.get(key);
  if (known !== undefined) return known;
  const bounded = { signal, spanMs: DIFF_SPAN_MS };
  const records = createDiffParser({ ...within, filesBefore: index });
  const isListed = await parse(records, reader.history.diff(from, to, { ...bounded, detail: 'records' }));
  const listed = records.end(isListed ? 'whole' : 'time');
  const [record] = listed.files;
  if (record === undefined) return isListed ? refuse({ code: 'path-not-found' }) : listed;
  const { before, after } = record;
  const options = { ...bounded, context, ignoresWhiteSpace };
  const parser = createDiffParser(within, { leavesOutFiles: ignoresWhiteSpace });
  const isWhole = await parse(parser, patchOf(reader, { before, after }, { ...options, nextTurn: clock.nextTurn }));
  const { files, truncated } = parser.end(isWhole ? 'whole' : 'time');
  const { hunks = [], additions = 0, deletions = 0, binary = false, cut = !isWhole } = files[0] ?? {};
  const diff: Diff = {
    files: [{ ...record, hunks, additions, deletions, binary, cut }],
    filesTotal: listed.filesTotal,
    truncated: truncated.filter((bound) => bound !== 'files'),
  };
  if (isWhole) knownDiffs.set(key, diff);
  return diff;
}

/** The record and the patch of one file, as git prints those of many. */
async function* patchOf(
  { history, blob }: ObjectReader,
  { before, after }: Pick<ChangedFile, 'before' | 'after'>,
  options: Parameters<ObjectHistory['diffOfBlobs']>[2] & Pick<Clock, 'nextTurn'>,
): AsyncGenerator<Uint8Array> {
  if (before?.id === after?.id) return;
  if (before !== null && after !== null && isBlob(before) && isBlob(after)) {
    yield* history.diffOfBlobs(before.id, after.id, options);
    return;
  }
  yield ENCODER.encode(`:100644 100644 ${EMPTY_BLOB_ID} ${EMPTY_BLOB_ID} M\0file\0\0diff --git a/file b/file\n`);
  const sides = [
    { side: before, mark: '-', header: `@@ -1,${ALL_LINES} +0,0 @@\n` },
    { side: after, mark: '+', header: `@@ -0,0 +1,${ALL_LINES} @@\n` },
  ];
  for (const { side, mark, header } of sides) {
    if (side === null) continue;
    // The one line of a submodule is counted, so that the other side may follow.
    if (isBlob(side)) yield* markedLines(blob(side.id), { mark, header, ...options });
    else yield ENCODER.encode(`${header.replace(String(ALL_LINES), '1')}${mark}Subproject commit ${side.id}\n`);
  }
}

function isBlob({ mode }: FileVersion): boolean {
  return entryType(mode) !== 'submodule';
}

const ENCODER = new TextEncoder();
const LINE_FEED = 0x0a;
/** git looks at this many bytes to learn whether a file is binary. */
const JUDGED_BYTES = 8_000;

/** How much of a blob its reader gets in one turn of the event loop. */
const TURN_BYTES = 64 * KIB;

interface Marking extends Pick<Clock, 'nextTurn'> {
  readonly mark: string;
  readonly header: string;
  readonly signal: AbortSignal;
}

/** The lines of a blob as those of a hunk; without a hunk for an empty or a binary one. */
async function* markedLines(
  chunks: AsyncIterable<Uint8Array>,
  { mark, header, signal, nextTurn }: Marking,
): AsyncGenerator<Uint8Array> {
  const code = mark.charCodeAt(0);
  let isFirst = true;
  let begins = true;
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += TURN_BYTES) {
      await nextTurn();
      signal.throwIfAborted();
      const part = chunk.subarray(at, at + TURN_BYTES);
      if (isFirst && part.subarray(0, JUDGED_BYTES).includes(0)) {
        yield ENCODER.encode('Binary files a/file and b/file differ\n');
        return;
      }
      if (isFirst) yield ENCODER.encode(header);
      isFirst = false;
      yield marked(part, code, begins);
      begins = part.at(-1) === LINE_FEED;
    }
  }
  if (!isFirst && !begins) yield ENCODER.encode('\n\\ No newline at end of file\n');
}

/** Puts the mark before each line. */
function marked(bytes: Uint8Array, mark: number, beginsLine: boolean): Uint8Array {
  // Each byte may be a line.
  const out = new Uint8Array(2 * bytes.length);
  let length = 0;
  let begins = beginsLine;
  for (const byte of bytes) {
    if (begins) out[length++] = mark;
    out[length++] = byte;
    begins = byte === LINE_FEED;
  }
  return out.subarray(0, length);
}
