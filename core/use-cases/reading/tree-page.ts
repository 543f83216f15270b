/**
 * A page of all that is below a tree, in the order of `git ls-tree -r -t`.
 *
 * Invariants: a tree may name another one many times, so that a short pack holds more entries than anybody can list.
 * The work and the memory of a page are bounded by entries and by the bytes of the trees that they are in, and others
 * have the event loop in between.
 */
import type { TreeEntry } from '../../git/objects.ts';
import { MIB } from '../../kernel/byte-units.ts';
import { refuse } from '../../kernel/decider.ts';
import type { ObjectId } from '../../kernel/ids.ts';
import { TREE_PATH_BYTES_MAX } from '../../kernel/limits.ts';
import type { Page } from '../../kernel/page.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { NextTurn } from '../../kernel/turns.ts';
import type { ObjectReader } from '../../ports/object-database.ts';
import { entriesOfFolder, entryType } from './entry-at-path.ts';

/** Entries of a recursive listing up to the end of its last page. */
export const TREE_ENTRIES_MAX = 100_000;
/** Entries that one page reads, those of folders that it does not come to included. */
export const TREE_ENTRIES_READ_MAX = 2 * TREE_ENTRIES_MAX;
/** Bytes of trees that one page reads: a large tree may hold folders that are as large. */
export const TREE_BYTES_READ_MAX = 32 * MIB;
/** Entries between two turns of the event loop. */
const TURN_ENTRIES = 500;

export interface EntryBelow extends TreeEntry {
  /** From the tree down. */
  readonly path: Uint8Array;
}

export interface PageBelow {
  readonly items: readonly EntryBelow[];
  readonly hasMore: boolean;
}

interface OpenFolder {
  /** Its path, with a slash at its end unless it is the tree itself. */
  readonly prefix: Uint8Array;
  readonly entries: readonly TreeEntry[];
  next: number;
}

const NO_PREFIX = new Uint8Array(0);
const SLASH = Uint8Array.of(0x2f);
const TOO_LARGE: { readonly refused: Refusal } = refuse({ code: 'tree-too-large' });

export async function pageBelow(
  reader: ObjectReader,
  root: ObjectId,
  { offset, limit }: Page,
  { signal, nextTurn }: { readonly signal: AbortSignal; readonly nextTurn: NextTurn },
): Promise<PageBelow | { readonly refused: Refusal }> {
  const end = offset + limit;
  if (end > TREE_ENTRIES_MAX) return TOO_LARGE;
  const items: EntryBelow[] = [];
  let [seen, read, bytesRead] = [0, 0, 0];
  const open: OpenFolder[] = [];
  const enter = async (id: ObjectId, prefix: Uint8Array): Promise<void> => {
    signal.throwIfAborted();
    const [info = null] = await reader.lookup([id]);
    bytesRead += info?.sizeBytes ?? 0;
    // What goes beyond is refused with the next entry. One entry more tells whether there is another page.
    const { items: entries } = await entriesOfFolder(reader, id, { offset: 0, limit: end + 1 - seen });
    read += entries.length;
    open.push({ prefix, entries, next: 0 });
  };
  await enter(root, NO_PREFIX);
  for (let folder = open.at(-1); folder !== undefined; folder = open.at(-1)) {
    const entry = folder.entries[folder.next];
    folder.next += 1;
    if (entry === undefined) {
      open.pop();
      continue;
    }
    if (seen === end) return { items, hasMore: true };
    const path = joined(folder.prefix, entry.name);
    if (path.length > TREE_PATH_BYTES_MAX || read > TREE_ENTRIES_READ_MAX || bytesRead > TREE_BYTES_READ_MAX) {
      return TOO_LARGE;
    }
    if (seen >= offset) items.push({ ...entry, path });
    seen += 1;
    if (entryType(entry.mode) === 'dir') await enter(entry.id, joined(path, SLASH));
    if (seen % TURN_ENTRIES === 0) await nextTurn();
  }
  return { items, hasMore: false };
}

function joined(start: Uint8Array, end: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(start.length + end.length);
  bytes.set(start);
  bytes.set(end, start.length);
  return bytes;
}
