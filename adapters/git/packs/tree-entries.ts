/**
 * Finds entries in the bytes of a tree (tree-walk.c in git) without making objects of all the others: a tree of 16 MiB
 * has half a million.
 *
 * Invariants: no bytes make a search throw, and the entries end before the first broken one. A search through a
 * large tree lets others have the event loop every few milliseconds.
 */
import type { TreeEntry } from '../../../core/git/objects.ts';
import { OBJECT_ID_BYTES, type ObjectId, parseObjectId } from '../../../core/kernel/ids.ts';
import type { Page, PageOf } from '../../../core/kernel/page.ts';
import type { NextTurn } from '../../../core/kernel/turns.ts';

/** Where an entry lies: its mode from `start` to `space`, its name from there to `zero`, then its id. */
interface Place {
  readonly start: number;
  readonly space: number;
  readonly zero: number;
}

/** Bytes that are searched in one part. */
const PART_BYTES = 512 * 1024;
const SPACE = 0x20;

/** Returns a page of the entries, in their order, and how many there are in all. */
export async function treePage(bytes: Buffer, { offset, limit }: Page, nextTurn: NextTurn): Promise<PageOf<TreeEntry>> {
  const items: TreeEntry[] = [];
  let total = 0;
  await search(
    bytes,
    (place) => {
      if (total >= offset && items.length < limit) items.push(entryAt(bytes, place));
      total += 1;
      return false;
    },
    nextTurn,
  );
  return { items, total };
}

/** Returns the first entry of this name, or null. */
export async function entryOfName(bytes: Buffer, name: Uint8Array, nextTurn: NextTurn): Promise<TreeEntry | null> {
  const wanted = Buffer.from(name);
  const found = await search(
    bytes,
    ({ space, zero }) =>
      zero - space - 1 === wanted.length && bytes.compare(wanted, 0, wanted.length, space + 1, zero) === 0,
    nextTurn,
  );
  return found === null ? null : entryAt(bytes, found);
}

/** Returns the first entry of this id that is no submodule, or null. */
export async function entryOfObject(bytes: Buffer, id: ObjectId, nextTurn: NextTurn): Promise<TreeEntry | null> {
  const wanted = Buffer.from(id, 'hex');
  const found = await search(
    bytes,
    (place) =>
      bytes.compare(wanted, 0, OBJECT_ID_BYTES, place.zero + 1, place.zero + 1 + OBJECT_ID_BYTES) === 0 &&
      entryAt(bytes, place).mode !== '160000',
    nextTurn,
  );
  return found === null ? null : entryAt(bytes, found);
}

/** Returns the first entry that `isFound` accepts, or null. */
async function search(bytes: Buffer, isFound: (place: Place) => boolean, nextTurn: NextTurn): Promise<Place | null> {
  let partEnd = PART_BYTES;
  for (let start = 0; start < bytes.length; ) {
    let space = start;
    while (space < bytes.length && bytes[space] !== SPACE) space += 1;
    let zero = space;
    while (zero < bytes.length && bytes[zero] !== 0) zero += 1;
    if (zero + OBJECT_ID_BYTES >= bytes.length) return null;
    const place = { start, space, zero };
    if (isFound(place)) return place;
    start = zero + 1 + OBJECT_ID_BYTES;
    if (start < partEnd) continue;
    partEnd = start + PART_BYTES;
    await nextTurn();
  }
  return null;
}

function entryAt(bytes: Buffer, { start, space, zero }: Place): TreeEntry {
  const id = parseObjectId(bytes.toString('hex', zero + 1, zero + 1 + OBJECT_ID_BYTES));
  if (id === null) throw new TypeError(`${OBJECT_ID_BYTES} bytes are an object id`);
  // The name is copied, so that it does not keep the whole tree in memory.
  const name = Uint8Array.prototype.slice.call(bytes, space + 1, zero);
  return { name, mode: modeOf(bytes.toString('latin1', start, space)), id };
}

/** The bits of a mode that are the type of an entry, and their values (stat(2)). */
const TYPE_BITS = 0o170000;
const FOLDER_BITS = 0o040000;
const LINK_BITS = 0o120000;
const FILE_BITS = 0o100000;

/**
 * Returns the mode in six digits. Old trees have odd ones. As git does (canon_mode), folders and links are taken for
 * what they are whatever their permissions, and an entry that is neither of these nor a file is a submodule. A file
 * keeps its own permissions, such as 100664.
 */
function modeOf(text: string): string {
  // git keeps the last 32 bits of a mode of any length.
  switch (Number.parseInt(text.slice(-10), 8) & TYPE_BITS) {
    case FOLDER_BITS:
      return '040000';
    case LINK_BITS:
      return '120000';
    case FILE_BITS:
      return text.slice(-6).padStart(6, '0');
    default:
      return '160000';
  }
}
