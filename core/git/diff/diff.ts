/**
 * What changed between two commits, as pages and the API show it: files, and the lines of each.
 *
 * Invariants: a diff that a bound cut short says so, for the whole and for each file. A count is exact or null.
 */
import type { ObjectId } from '../../kernel/ids.ts';

export type ChangeStatus = 'added' | 'modified' | 'deleted' | 'renamed' | 'typechange';

/** One side of a change. A mode is six octal digits: `100644`, `120000` (a link), `160000` (a submodule). */
export interface FileVersion {
  readonly mode: string;
  /** A blob; for a submodule a commit of another repository. */
  readonly id: ObjectId;
}

export interface ChangedFile {
  readonly status: ChangeStatus;
  /** Raw bytes from the root, names separated by slashes: they need not be UTF-8. Of a deleted file the old path. */
  readonly path: Uint8Array;
  /** Set for a renamed file only. */
  readonly previousPath: Uint8Array | null;
  /** Null for an added file. */
  readonly before: FileVersion | null;
  /** Null for a deleted file. */
  readonly after: FileVersion | null;
  /** Lines. Null for a binary file, and for a file that was not read to its end. */
  readonly additions: number | null;
  readonly deletions: number | null;
  readonly binary: boolean;
  /** Empty for a binary file, for a change of mode or name alone, and for a file whose lines were not read. */
  readonly hunks: readonly Hunk[];
  /** Whether `hunks` lack lines, because of any bound. */
  readonly cut: boolean;
}

/** The number of lines of a hunk that has all lines of a file, which nobody counted before the first of them. */
export const ALL_LINES = 999_999_999;

export interface Hunk {
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
  /** What git shows after the second `@@`: mostly the line that begins the function. Often empty. */
  readonly heading: string;
  /** Fewer than the counts above say if the file is cut. */
  readonly lines: readonly DiffLine[];
}

export interface DiffLine {
  readonly kind: 'context' | 'added' | 'deleted';
  /** Numbers from 1 in the old and the new file; null where the line does not exist. */
  readonly oldNumber: number | null;
  readonly newNumber: number | null;
  /** Without its line feed. Bytes that are not UTF-8 are decoded by a guess (file-text.ts), or are U+FFFD. */
  readonly text: string;
  readonly guessed: boolean;
  /** Whether the end of the text was left out. */
  readonly cut: boolean;
  /** False for the last line of a file that does not end in a line feed. */
  readonly ended: boolean;
}

/**
 * Which bound left something out: the number of files or the bytes of their paths, the lines of a file, the bytes of
 * all, or the time.
 */
export type DiffBound = 'files' | 'lines' | 'bytes' | 'time';

export interface Diff {
  /** In the order of git: by bytes of the path. */
  readonly files: readonly ChangedFile[];
  /** How many files changed; null if they were not counted to the end. */
  readonly filesTotal: number | null;
  /** Empty if the diff is whole. */
  readonly truncated: readonly DiffBound[];
}
