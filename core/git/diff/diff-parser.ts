/**
 * Parses what `git diff-tree -r -z --raw -p --full-index` prints: one record a file, then one patch a file in the same
 * order (git-diff-tree(1), Raw output format, and diff-generate-patch(5)). Without `-p` there are the records alone.
 *
 * Invariants: paths come from the records alone, which do not quote them. Content never counts as syntax, because
 * the header of each hunk says how many lines follow. Memory is bounded, whatever is in the files.
 */
import { MIB } from '../../kernel/byte-units.ts';
import { OBJECT_ID_PATTERN, type ObjectId, objectId, ZERO_OBJECT_ID } from '../../kernel/ids.ts';
import { DIFF_FILES_MAX, DIFF_PATH_BYTES_MAX } from '../../kernel/limits.ts';
import { ByteLines } from '../byte-lines.ts';
import { fileText } from '../file-text.ts';
import { decodeUtf8Lossy } from '../utf8.ts';
import type { ChangedFile, ChangeStatus, Diff, DiffBound, DiffLine, FileVersion, Hunk } from './diff.ts';

/** Lines of one file, and bytes of one line, that a diff shows. */
export const DIFF_FILE_LINES_MAX = 2_000;
export const DIFF_LINE_BYTES_MAX = 4_096;
/** Bytes of all lines that a diff shows. */
export const DIFF_KEPT_BYTES_MAX = MIB;
/** Bytes of git's output that are read for a diff. */
export const DIFF_READ_BYTES_MAX = 32 * MIB;
/** Bytes of the paths of all files that a diff lists. Each byte may take six in JSON. */
export const DIFF_PATHS_BYTES_MAX = 2 * MIB;

export interface DiffBounds {
  /** Files that are listed. */
  readonly files: number;
  /** Files before the first that is listed, where there are no patches. */
  readonly filesBefore: number;
  /** Lines that are kept of one file. */
  readonly fileLines: number;
  /** Lines of a file before the first that is kept. */
  readonly linesBefore: number;
  /** Added and deleted lines that are kept of all files. */
  readonly changedLines: number;
  /** Bytes of all lines that are kept. */
  readonly keptBytes: number;
  /** Bytes of git's output that are read. */
  readonly readBytes: number;
  /** Whether a file with more lines keeps the first of them; else it keeps none, and the others have the room. */
  readonly partialFiles: boolean;
}

export const DIFF_BOUNDS: DiffBounds = {
  files: DIFF_FILES_MAX,
  filesBefore: 0,
  fileLines: DIFF_FILE_LINES_MAX,
  linesBefore: 0,
  changedLines: Number.POSITIVE_INFINITY,
  keptBytes: DIFF_KEPT_BYTES_MAX,
  readBytes: DIFF_READ_BYTES_MAX,
  partialFiles: true,
};

export interface DiffParser {
  /** Takes the next bytes; returns false if it needs no more. */
  add(chunk: Uint8Array): boolean;
  /** Call it once, after the last bytes: `whole` if git ended by itself, `time` if its time was up. */
  end(how: 'whole' | 'time'): Diff;
}

const NUL = 0;
const LINE_FEED = 10;
/** The first byte of a line in a hunk. */
const ADDED = 0x2b;
const DELETED = 0x2d;
const NO_LINE_FEED = 0x5c;
const RECORD = new RegExp(`^:(\\d{6}) (\\d{6}) (${OBJECT_ID_PATTERN}) (${OBJECT_ID_PATTERN}) ([AMDTR])\\d*$`);
const HUNK = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?/;
const INDEX = new RegExp(`^index (${OBJECT_ID_PATTERN})\\.\\.(${OBJECT_ID_PATTERN})`);
const STATUSES: { readonly [letter: string]: ChangeStatus } = {
  A: 'added',
  M: 'modified',
  D: 'deleted',
  T: 'typechange',
  R: 'renamed',
};

/** A file while its patch is read. */
interface FileBeingRead {
  readonly status: ChangeStatus;
  readonly path: Uint8Array;
  readonly previousPath: Uint8Array | null;
  readonly before: FileVersion | null;
  readonly after: FileVersion | null;
  /** For a change of type git prints two patches: a deletion, then an addition. */
  patches: number;
  additions: number;
  deletions: number;
  binary: boolean;
  hunks: Hunk[];
  /** Lines that were read, and what those that are kept take of the bounds of all files. */
  lines: number;
  kept: { bytes: number; changes: number };
  cut: boolean;
}

/**
 * `leavesOutFiles`: a file may have no patch, as one has none whose white space alone differs where that does not
 * count.
 */
export function createDiffParser(bounds: DiffBounds = DIFF_BOUNDS, { leavesOutFiles = false } = {}): DiffParser {
  return new Parser(bounds, leavesOutFiles);
}

class Parser implements DiffParser {
  readonly #bounds: DiffBounds;
  readonly #truncated = new Set<DiffBound>();
  readonly #files: FileBeingRead[] = [];
  #total = 0;
  #pathsBytes = 0;
  #stage: 'records' | 'patches' = 'records';
  readonly #records = new ByteLines(NUL, DIFF_PATH_BYTES_MAX);
  readonly #lines = new ByteLines(LINE_FEED, DIFF_LINE_BYTES_MAX + 1);
  /** The record whose paths follow. */
  #record: { readonly fields: RegExpExecArray; readonly paths: Uint8Array[] } | null = null;
  /** The file whose patch is read: an index into all files, listed or not. -1 before the first. */
  #current = -1;
  #hunk: HunkBeingRead | null = null;
  readonly #leavesOutFiles: boolean;
  /** Whether the patch that is read has said which objects it is of. */
  #isNamed = true;
  #readBytes = 0;
  /** What is kept of all files. */
  readonly #kept = { bytes: 0, changes: 0 };
  #enough = false;

  constructor(bounds: DiffBounds, leavesOutFiles: boolean) {
    this.#bounds = bounds;
    this.#leavesOutFiles = leavesOutFiles;
  }

  add(chunk: Uint8Array): boolean {
    let at = 0;
    while (at < chunk.length && !this.#enough) {
      const split = this.#stage === 'records' ? this.#records : this.#lines;
      at = split.take(chunk, at);
      const piece = split.next();
      if (piece === null) break;
      if (this.#stage === 'records') this.#takeRecord(piece.bytes, piece.cut);
      else this.#takeLine(piece.bytes, piece.cut);
    }
    this.#readBytes += chunk.length;
    if (!this.#enough && this.#readBytes > this.#bounds.readBytes) this.#stop('bytes');
    return !this.#enough;
  }

  end(how: 'whole' | 'time'): Diff {
    if (how === 'time' && !this.#enough) this.#stop('time');
    this.#passUnchanged();
    const counted = this.#stage === 'patches' || !(this.#truncated.has('time') || this.#truncated.has('bytes'));
    const isRead = (index: number): boolean => !this.#stopped() || index < this.#current;
    return {
      files: this.#files.map((file, index) => changedFile(file, isRead(index))),
      filesTotal: counted ? this.#total : null,
      truncated: (['files', 'lines', 'bytes', 'time'] as const).filter((bound) => this.#truncated.has(bound)),
    };
  }

  /** Whether the patch of the current file may lack its end. */
  #stopped(): boolean {
    return this.#enough && this.#current < this.#files.length;
  }

  #stop(bound: DiffBound): void {
    this.#truncated.add(bound);
    this.#enough = true;
  }

  #takeRecord(bytes: Uint8Array, cut: boolean): void {
    if (cut) return this.#stop('bytes');
    if (this.#record !== null) {
      // Copied: the bytes are valid only until the next piece.
      this.#record.paths.push(new Uint8Array(bytes));
      this.#endRecord(this.#record);
      return;
    }
    // The records end with an empty one.
    if (bytes.length === 0) {
      this.#stage = 'patches';
      return;
    }
    const fields = RECORD.exec(decodeUtf8Lossy(bytes));
    if (fields === null) throw new TypeError(`git diff-tree printed the record ${decodeUtf8Lossy(bytes)}`);
    this.#record = { fields, paths: [] };
  }

  #endRecord({ fields, paths }: { readonly fields: RegExpExecArray; readonly paths: readonly Uint8Array[] }): void {
    const [, oldMode = '', newMode = '', oldId = '', newId = '', letter = ''] = fields;
    const isRename = letter === 'R';
    const path = paths[isRename ? 1 : 0];
    if (path === undefined) return;
    this.#record = null;
    this.#total += 1;
    if (this.#total <= this.#bounds.filesBefore) return;
    this.#pathsBytes += paths.reduce((sum, { length }) => sum + length, 0);
    if (this.#files.length >= this.#bounds.files || this.#pathsBytes > DIFF_PATHS_BYTES_MAX) {
      this.#truncated.add('files');
      return;
    }
    this.#files.push({
      status: STATUSES[letter] ?? 'modified',
      path,
      previousPath: isRename ? (paths[0] ?? null) : null,
      before: versionOf(oldMode, oldId),
      after: versionOf(newMode, newId),
      patches: 0,
      additions: 0,
      deletions: 0,
      binary: false,
      hunks: [],
      lines: 0,
      kept: { bytes: 0, changes: 0 },
      cut: false,
    });
  }

  #takeLine(bytes: Uint8Array, cut: boolean): void {
    const hunk = this.#hunk;
    if (hunk !== null && hunk.takes(bytes)) {
      this.#takeHunkLine(hunk, bytes, cut);
      return;
    }
    this.#hunk = null;
    const line = decodeUtf8Lossy(bytes);
    if (line.startsWith('diff --git ')) return this.#beginPatch();
    const index = INDEX.exec(line);
    if (index !== null) this.#nameObjects(objectId(index[1] ?? ''), objectId(index[2] ?? ''));
    const file = this.#files[this.#current];
    if (file === undefined) return;
    if (line.startsWith('Binary files ')) file.binary = true;
    const header = HUNK.exec(line);
    if (header !== null) this.#hunk = new HunkBeingRead(header, line.slice(header[0].length));
  }

  #nameObjects(oldId: ObjectId, newId: ObjectId): void {
    this.#isNamed = true;
    if (this.#leavesOutFiles) {
      // Those in between have no patch.
      const isOther = (file: FileBeingRead): boolean => !isOf(file, oldId, newId);
      for (let file = this.#files[this.#current]; file !== undefined && isOther(file); ) {
        this.#current += 1;
        file = this.#files[this.#current];
      }
    }
    const file = this.#files[this.#current];
    if (file !== undefined) requireSame(file, oldId, newId);
    else this.#enough = true;
  }

  /** A patch that named no objects is of a file whose name or mode alone changed, perhaps behind files without one. */
  #passUnchanged(): void {
    if (!this.#leavesOutFiles || this.#isNamed) return;
    this.#isNamed = true;
    const isUnchanged = ({ before, after }: FileBeingRead): boolean => before?.id === after?.id;
    const found = this.#files.findIndex((file, index) => index >= this.#current && isUnchanged(file));
    if (found !== -1) this.#current = found;
  }

  #beginPatch(): void {
    this.#passUnchanged();
    this.#isNamed = false;
    const file = this.#files[this.#current];
    if (file === undefined || file.status !== 'typechange' || file.patches === 2) this.#current += 1;
    const next = this.#files[this.#current];
    if (next === undefined) this.#enough = true;
    else next.patches += 1;
  }

  #takeHunkLine(hunk: HunkBeingRead, bytes: Uint8Array, cut: boolean): void {
    const file = this.#files[this.#current];
    if (file === undefined) return;
    const kind = hunk.count(bytes);
    if (kind === null) return;
    if (kind === 'added') file.additions += 1;
    if (kind === 'deleted') file.deletions += 1;
    file.lines += 1;
    if (file.lines <= this.#bounds.linesBefore || file.cut) return;
    const bound = this.#boundOf(file, bytes, kind);
    if (bound !== null) return this.#cut(file, bound);
    if (hunk.keep(kind, bytes, cut)) file.hunks.push(hunk.kept);
    const changes = kind === 'context' ? 0 : 1;
    for (const kept of [file.kept, this.#kept]) {
      kept.bytes += bytes.length;
      kept.changes += changes;
    }
  }

  /** Returns the bound that one line more would break. */
  #boundOf(file: FileBeingRead, bytes: Uint8Array, kind: DiffLine['kind']): DiffBound | null {
    const { fileLines, linesBefore, changedLines, keptBytes } = this.#bounds;
    if (file.lines > linesBefore + fileLines) return 'lines';
    if (kind !== 'context' && this.#kept.changes >= changedLines) return 'lines';
    return this.#kept.bytes + bytes.length > keptBytes ? 'bytes' : null;
  }

  #cut(file: FileBeingRead, bound: DiffBound): void {
    this.#truncated.add(bound);
    file.cut = true;
    if (this.#bounds.partialFiles) return;
    file.hunks = [];
    this.#kept.bytes -= file.kept.bytes;
    this.#kept.changes -= file.kept.changes;
  }
}

/** A hunk, which says how many lines of the old and the new file it has. */
class HunkBeingRead {
  readonly kept: Hunk & { readonly lines: DiffLine[] };
  #oldLeft: number;
  #newLeft: number;
  /** The numbers of the next line. */
  #oldNumber: number;
  #newNumber: number;
  #lastIsKept = false;

  constructor([, oldStart = '0', oldLines = '1', newStart = '0', newLines = '1']: RegExpExecArray, heading: string) {
    this.#oldLeft = Number(oldLines);
    this.#newLeft = Number(newLines);
    this.#oldNumber = Number(oldStart);
    this.#newNumber = Number(newStart);
    const counts = { oldLines: this.#oldLeft, newLines: this.#newLeft };
    this.kept = { oldStart: this.#oldNumber, newStart: this.#newNumber, ...counts, heading, lines: [] };
  }

  /** Whether the line belongs to this hunk. */
  takes(bytes: Uint8Array): boolean {
    return this.#oldLeft > 0 || this.#newLeft > 0 || bytes[0] === NO_LINE_FEED;
  }

  /** Counts a line. Null for the mark of a file that does not end in a line feed: it belongs to the line before. */
  count([mark]: Uint8Array): DiffLine['kind'] | null {
    if (mark === NO_LINE_FEED) {
      const last = this.#lastIsKept ? this.kept.lines.pop() : undefined;
      if (last !== undefined) this.kept.lines.push({ ...last, ended: false });
      return null;
    }
    const kind = mark === ADDED ? 'added' : mark === DELETED ? 'deleted' : 'context';
    this.#lastIsKept = false;
    if (kind !== 'added') {
      this.#oldNumber += 1;
      this.#oldLeft -= 1;
    }
    if (kind !== 'deleted') {
      this.#newNumber += 1;
      this.#newLeft -= 1;
    }
    return kind;
  }

  /** Keeps the line that was counted last. Returns true for the first line of the hunk. */
  keep(kind: DiffLine['kind'], bytes: Uint8Array, cut: boolean): boolean {
    this.#lastIsKept = true;
    const oldNumber = kind === 'added' ? null : this.#oldNumber - 1;
    const newNumber = kind === 'deleted' ? null : this.#newNumber - 1;
    const text = bytes.subarray(1);
    // A line that was cut may end within a character.
    const found = cut ? null : fileText(text);
    const guessed = found?.encoding === 'Windows-1252';
    const shown = guessed ? found.text : decodeUtf8Lossy(text);
    return this.kept.lines.push({ kind, oldNumber, newNumber, text: shown, guessed, cut, ended: true }) === 1;
  }
}

function versionOf(mode: string, id: string): FileVersion | null {
  return mode === '000000' ? null : { mode, id: objectId(id) };
}

/** Throws if the patch is not that of this file: the order of records and patches would not be what we rely on. */
function requireSame(file: FileBeingRead, oldId: ObjectId, newId: ObjectId): void {
  if (isOf(file, oldId, newId)) return;
  throw new TypeError(`git diff-tree printed the patch ${oldId}..${newId} for ${idsOf(file).join('..')}`);
}

function isOf(file: FileBeingRead, oldId: ObjectId, newId: ObjectId): boolean {
  const expected = idsOf(file);
  // Each of the two patches of a change of type has one side only.
  const sides = file.status === 'typechange' ? [...expected, ZERO_OBJECT_ID] : expected;
  return sides.includes(oldId) && sides.includes(newId);
}

function idsOf({ before, after }: FileBeingRead): readonly ObjectId[] {
  return [before?.id ?? ZERO_OBJECT_ID, after?.id ?? ZERO_OBJECT_ID];
}

function changedFile(file: FileBeingRead, isRead: boolean): ChangedFile {
  const { status, path, previousPath, before, after, binary, hunks } = file;
  const counted = isRead && !binary;
  return {
    status,
    path,
    previousPath,
    before,
    after,
    binary,
    hunks,
    additions: counted ? file.additions : null,
    deletions: counted ? file.deletions : null,
    cut: file.cut || (!isRead && !binary),
  };
}
