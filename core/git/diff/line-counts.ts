/**
 * Parses what `git diff-tree -r -z --numstat` prints: how many lines of each file were added and deleted
 * (git-diff-tree(1), Other diff formats).
 *
 * Invariants: memory is bounded by the bytes of the paths, which the parser of a diff bounds likewise.
 */
import { DIFF_PATH_BYTES_MAX } from '../../kernel/limits.ts';
import { ByteLines } from '../byte-lines.ts';
import { DIFF_PATHS_BYTES_MAX } from './diff-parser.ts';

export interface LineCounts {
  readonly additions: number;
  readonly deletions: number;
}

export interface LineCountsParser {
  /** Takes the next bytes; returns false if it needs no more. */
  add(chunk: Uint8Array): boolean;
  /** Returns the lines of a file by its path, that of today if it was renamed; undefined if they were not counted. */
  countsOf(path: Uint8Array): LineCounts | undefined;
}

const COUNTS = /^(\d+|-)\t(\d+|-)\t/;
const NUL = 0;
/** Counts before a path have at most this many bytes. Internal: git prints no longer ones. */
const COUNTS_BYTES_MAX = 64;

export function createLineCountsParser(): LineCountsParser {
  const records = new ByteLines(NUL, DIFF_PATH_BYTES_MAX + COUNTS_BYTES_MAX);
  const found = new Map<string, LineCounts>();
  let bytes = 0;
  /** The counts of a rename, whose two paths follow, and how many of them have come. */
  let renamed: { readonly counts: LineCounts | null; paths: number } | null = null;
  const keep = (path: string, counts: LineCounts | null): void => {
    bytes += path.length;
    if (counts !== null) found.set(path, counts);
  };
  const take = (text: string): void => {
    if (renamed !== null) {
      renamed.paths += 1;
      if (renamed.paths < 2) return;
      keep(text, renamed.counts);
      renamed = null;
      return;
    }
    const [head = '', additions = '', deletions = ''] = COUNTS.exec(text) ?? [];
    if (head === '') return;
    // A binary file has dashes.
    const counts = additions === '-' ? null : { additions: Number(additions), deletions: Number(deletions) };
    const path = text.slice(head.length);
    if (path === '') renamed = { counts, paths: 0 };
    else keep(path, counts);
  };
  return {
    add(chunk) {
      for (let at = 0; at < chunk.length; ) {
        at = records.take(chunk, at);
        const piece = records.next();
        if (piece === null) break;
        if (piece.cut || bytes > DIFF_PATHS_BYTES_MAX) return false;
        // Byte by byte, as paths need not be UTF-8.
        take(textOf(piece.bytes));
      }
      return true;
    },
    countsOf: (path) => found.get(textOf(path)),
  };
}

const BYTES = new TextDecoder('latin1');

/** Returns a text of its own for each sequence of bytes: that decoder knows a character for every byte. */
function textOf(bytes: Uint8Array): string {
  return BYTES.decode(bytes);
}
