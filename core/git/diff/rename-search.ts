/**
 * Finds in the records of a diff the path that one file had before it was renamed (`git diff-tree -r -z --raw`, with
 * renames found; git-diff-tree(1), Raw output format).
 *
 * Invariants: the lines of files, which may follow the records, are not read.
 */
import { DIFF_PATH_BYTES_MAX } from '../../kernel/limits.ts';
import { ByteLines } from '../byte-lines.ts';
import { nameKey } from '../tree-bytes.ts';

const NUL = 0;

export interface RenameSearch {
  /** Takes the next bytes; returns false if it needs no more. */
  add(chunk: Uint8Array): boolean;
  /** Null if the file was not renamed. */
  readonly earlierPath: Uint8Array | null;
}

/** `path` is what the file is called after the change. */
export function createRenameSearch(path: Uint8Array): RenameSearch {
  return new Search(nameKey(path));
}

class Search implements RenameSearch {
  earlierPath: Uint8Array | null = null;
  readonly #wanted: string;
  readonly #pieces = new ByteLines(NUL, DIFF_PATH_BYTES_MAX);
  /** The paths that the record before them has still to name: the earlier one of a rename comes first. */
  #awaited = 0;
  #earlier: Uint8Array | null = null;
  #enough = false;

  constructor(wanted: string) {
    this.#wanted = wanted;
  }

  add(chunk: Uint8Array): boolean {
    for (let at = 0; at < chunk.length && !this.#enough; ) {
      at = this.#pieces.take(chunk, at);
      const piece = this.#pieces.next();
      if (piece !== null) this.#take(piece.bytes, piece.cut);
    }
    return !this.#enough;
  }

  #take(bytes: Uint8Array, cut: boolean): void {
    if (this.#awaited === 0) {
      // An empty record ends them.
      this.#enough = bytes.length === 0;
      this.#awaited = / R\d+$/.test(nameKey(bytes)) ? 2 : 1;
      this.#earlier = null;
      return;
    }
    this.#awaited -= 1;
    // Nothing is found under the start of a path.
    if (this.#awaited === 1) this.#earlier = cut ? null : new Uint8Array(bytes);
    else if (nameKey(bytes) === this.#wanted) {
      this.earlierPath = this.#earlier;
      this.#enough = true;
    }
  }
}
