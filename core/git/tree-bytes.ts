/** Trees as Git stores them: names, the order of their entries, and their bytes (git-mktree(1)). */
import { OBJECT_ID_BYTES, type ObjectId } from '../kernel/ids.ts';
import { inParts, type Steps } from '../kernel/turns.ts';
import type { TreeEntry } from './objects.ts';
import { encodeUtf8 } from './utf8.ts';

export const FOLDER_MODE = '040000';

const SLASH = 0x2f;
const SPACE = 0x20;
const OWNER_MAY_EXECUTE = 0o100;
const ZERO = 0x30;
const NINE = 0x39;
const LETTER_A = 0x61;

/** Decodes each byte to one character, so that equal names are equal texts. */
const decoder = new TextDecoder('latin1');

/** Returns a text that stands for the name of an entry, which need not be UTF-8. */
export function nameKey(name: Uint8Array): string {
  return decoder.decode(name);
}

/** Returns the mode that git writes for this one: files in old histories have others, such as 100664. */
export function writtenMode(mode: string): string {
  if (!mode.startsWith('100')) return mode;
  return (Number.parseInt(mode, 8) & OWNER_MAY_EXECUTE) === 0 ? '100644' : '100755';
}

/** Compares as git sorts: by bytes, and a folder as if its name ended with a slash. */
export function byTreeOrder(a: TreeEntry, b: TreeEntry): number {
  const shared = Math.min(a.name.length, b.name.length);
  for (let at = 0; at < shared; at += 1) {
    const difference = (a.name[at] ?? 0) - (b.name[at] ?? 0);
    if (difference !== 0) return difference;
  }
  return byteAt(a, shared) - byteAt(b, shared);
}

/** The byte at or right behind the end of a name. */
function byteAt({ name, mode }: TreeEntry, at: number): number {
  return name[at] ?? (mode === FOLDER_MODE ? SLASH : 0);
}

/** Returns the tree of these entries, which are in git's order, in steps: it may have hundreds of thousands. */
export function* writingTree(entries: readonly TreeEntry[]): Steps<Uint8Array> {
  const modes = new Map<string, Uint8Array>();
  const modeBytes = (mode: string): Uint8Array => {
    const known = modes.get(mode) ?? encodeUtf8(writtenMode(mode).replace(/^0/, ''));
    modes.set(mode, known);
    return known;
  };
  let length = 0;
  yield* inParts(entries, ({ name, mode }) => {
    length += modeBytes(mode).length + name.length + 2 + OBJECT_ID_BYTES;
  });
  const bytes = new Uint8Array(length);
  let at = 0;
  yield* inParts(entries, ({ name, mode, id }) => {
    const written = modeBytes(mode);
    bytes.set(written, at);
    at += written.length;
    bytes[at++] = SPACE;
    bytes.set(name, at);
    at += name.length + 1;
    writeId(bytes, at, id);
    at += OBJECT_ID_BYTES;
  });
  return bytes;
}

function writeId(bytes: Uint8Array, at: number, id: ObjectId): void {
  for (let byte = 0; byte < OBJECT_ID_BYTES; byte += 1) {
    bytes[at + byte] = 16 * digitAt(id, 2 * byte) + digitAt(id, 2 * byte + 1);
  }
}

/** The value of a hex digit, 0 to 9 or a to f. */
function digitAt(id: ObjectId, at: number): number {
  const code = id.charCodeAt(at);
  return code <= NINE ? code - ZERO : code - LETTER_A + 10;
}
