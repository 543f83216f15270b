/**
 * Maps commits to small numbers, in some 40 bytes each: a history of a million commits takes 50 MB.
 *
 * Invariants: a lookup is exact, since all bytes of an id are compared; growing never stops the event loop for
 * long, because only one of 256 parts grows at a time.
 */
import { OBJECT_ID_BYTES, type ObjectId } from '../../kernel/ids.ts';

/** Words of an id. */
const WORDS = OBJECT_ID_BYTES / 4;
const SLOT_WORDS = WORDS + 1;
const FIRST_SLOTS = 4;

interface Part {
  /** Open addressing; the last word of a slot is its mark plus one, zero if the slot is free. */
  words: Uint32Array;
  used: number;
}

export class CommitMarks {
  readonly #parts = new Map<number, Part>();
  #count = 0;
  #words = 0;

  get count(): number {
    return this.#count;
  }

  get memoryBytes(): number {
    return this.#words * 4;
  }

  /** Returns the mark; null if the commit has none. */
  get(id: ObjectId): number | null {
    const part = this.#parts.get(partOf(id));
    if (part === undefined) return null;
    const { words } = part;
    const mark = words[slotOf(words, id) + WORDS] ?? 0;
    return mark === 0 ? null : mark - 1;
  }

  /** Sets the mark of a commit that has none; otherwise the first mark stays. */
  add(id: ObjectId, mark: number): void {
    const key = partOf(id);
    const part = this.#parts.get(key) ?? this.#newPart(key);
    if ((part.used + 1) * SLOT_WORDS * 4 > part.words.length * 3) this.#grow(part);
    const { words } = part;
    const slot = slotOf(words, id);
    if (words[slot + WORDS] !== 0) return;
    for (let word = 0; word < WORDS; word += 1) words[slot + word] = wordOf(id, word);
    words[slot + WORDS] = mark + 1;
    part.used += 1;
    this.#count += 1;
  }

  #newPart(key: number): Part {
    const part = { words: new Uint32Array(FIRST_SLOTS * SLOT_WORDS), used: 0 };
    this.#parts.set(key, part);
    this.#words += part.words.length;
    return part;
  }

  #grow(part: Part): void {
    const before = part.words;
    const after = new Uint32Array(before.length * 2);
    for (let at = 0; at < before.length; at += SLOT_WORDS) {
      if (before[at + WORDS] === 0) continue;
      let slot = firstSlot(after, before[at + 1] ?? 0);
      while (after[slot + WORDS] !== 0) slot = (slot + SLOT_WORDS) % after.length;
      after.set(before.subarray(at, at + SLOT_WORDS), slot);
    }
    part.words = after;
    this.#words += after.length - before.length;
  }
}

function partOf(id: ObjectId): number {
  return Number.parseInt(id.slice(0, 2), 16);
}

function wordOf(id: ObjectId, word: number): number {
  return Number.parseInt(id.slice(word * 8, word * 8 + 8), 16);
}

/** Where the commit is, or the free slot where it belongs. */
function slotOf(words: Uint32Array, id: ObjectId): number {
  let slot = firstSlot(words, wordOf(id, 1));
  while (words[slot + WORDS] !== 0 && !isAt(words, slot, id)) slot = (slot + SLOT_WORDS) % words.length;
  return slot;
}

function firstSlot(words: Uint32Array, hash: number): number {
  return (hash % (words.length / SLOT_WORDS)) * SLOT_WORDS;
}

function isAt(words: Uint32Array, slot: number, id: ObjectId): boolean {
  for (let word = 0; word < WORDS; word += 1) if (words[slot + word] !== wordOf(id, word)) return false;
  return true;
}
