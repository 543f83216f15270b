/**
 * Finds, in git's list of commits with what they changed, the newest commit that made each entry of a folder what it is
 * (`git log -z --raw -t -c --format=%H`, newest first).
 *
 * Invariants: a commit counts for an entry only if it left the entry with the mode and id that the folder shows, so
 * a change that a later merge threw away counts for nothing.
 */
import { type ObjectId, parseObjectId } from '../../kernel/ids.ts';
import { DIFF_PATH_BYTES_MAX } from '../../kernel/limits.ts';
import { ByteLines } from '../byte-lines.ts';
import type { TreeEntry } from '../objects.ts';
import { nameKey } from '../tree-bytes.ts';

const NUL = 0;
const SLASH = 0x2f;
const LINE_FEED = 0x0a;
const COLON = 0x3a;
export interface LastChanges {
  /** The newest commit of each entry that was found, by `nameKey`. */
  readonly found: ReadonlyMap<string, ObjectId>;
  /** Takes the next bytes; returns false when every entry was found. */
  add(chunk: Uint8Array): boolean;
}

/** `folder` is the path of the folder, without a slash at its end; empty for the root. */
export function createLastChanges(folder: Uint8Array, entries: readonly TreeEntry[]): LastChanges {
  return new Search(folder, entries);
}

class Search implements LastChanges {
  readonly found = new Map<string, ObjectId>();
  /** Where an entry's name starts in its path. */
  readonly #start: number;
  /** The entries that are looked for, with what their last change left: `<mode> <id>`. */
  readonly #wanted: Map<string, string>;
  readonly #pieces = new ByteLines(NUL, DIFF_PATH_BYTES_MAX);
  #commit: ObjectId | null = null;
  /** What the record left, while its path is awaited. */
  #left: string | null = null;

  constructor(folder: Uint8Array, entries: readonly TreeEntry[]) {
    this.#start = folder.length === 0 ? 0 : folder.length + 1;
    this.#wanted = new Map(entries.map(({ name, mode, id }) => [nameKey(name), `${mode} ${id}`]));
  }

  add(chunk: Uint8Array): boolean {
    for (let at = 0; at < chunk.length && this.#wanted.size > 0; ) {
      at = this.#pieces.take(chunk, at);
      const piece = this.#pieces.next();
      if (piece !== null) this.#take(piece.bytes);
    }
    return this.#wanted.size > 0;
  }

  #take(bytes: Uint8Array): void {
    if (this.#left !== null) {
      this.#takePath(bytes, this.#left);
      this.#left = null;
      return;
    }
    // The first record of a commit stands on a line of its own.
    const record = bytes[0] === LINE_FEED ? bytes.subarray(1) : bytes;
    if (record[0] === COLON) this.#left = leftBy(nameKey(record));
    else this.#commit = parseObjectId(nameKey(record)) ?? this.#commit;
  }

  #takePath(path: Uint8Array, left: string): void {
    // Deeper changes also change the folder's own entry, which has a record too.
    if (this.#commit === null || path.length <= this.#start || path.indexOf(SLASH, this.#start) >= 0) return;
    const key = nameKey(path.subarray(this.#start));
    if (this.#wanted.get(key) !== left) return;
    this.#wanted.delete(key);
    this.found.set(key, this.#commit);
  }
}

/** `:<mode> <mode> <id> <id> M`, with one colon, mode and id more for each further parent of a merge. */
function leftBy(record: string): string {
  const fields = record.split(' ');
  const sides = (fields.length - 1) / 2;
  return `${fields[sides - 1]} ${fields[sides * 2 - 1]}`;
}
