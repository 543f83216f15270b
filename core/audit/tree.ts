/**
 * The Merkle tree of an account's log: RFC 6962, section 2.1.
 *
 * A tree of n leaves is a list of complete subtrees, from left to right, whose sizes are the powers of two in n. Every
 * hash that a proof holds is the hash of a range of leaves, which is such a list as well: so the whole tree is
 * described by its complete subtrees, which never change once they are complete.
 *
 * Invariants: adding a leaf hashes O(log n) nodes and reads none but the complete subtrees of the tree before it. A
 * proof reads O(log n) subtrees.
 */
import type { Digest } from '../kernel/digest.ts';
import { type Hash, parseHash, type Subtree } from '../ports/account-log.ts';

/** The leaves from `begin` up to but not including `end`. */
export interface LeafRange {
  readonly begin: number;
  readonly end: number;
}

/** Returns the hash of a leaf: that of a zero byte and the content. */
export function leafHash(digest: Digest, content: string): Hash {
  return parseHash(digest.sha256(`\0${content}`));
}

/** Returns the hash of a node: that of the byte 1 and the hashes of its children. */
export function nodeHash(digest: Digest, left: Hash, right: Hash): Hash {
  const bytes = new Uint8Array(65);
  bytes[0] = 1;
  copyHex(bytes, 1, left);
  copyHex(bytes, 33, right);
  return parseHash(digest.sha256OfBytes(bytes));
}

function copyHex(bytes: Uint8Array, offset: number, hex: string): void {
  for (let at = 0; at < 32; at += 1) bytes[offset + at] = Number.parseInt(hex.slice(2 * at, 2 * at + 2), 16);
}

/** Returns the root of a tree without leaves: the hash of nothing. */
function emptyRoot(digest: Digest): Hash {
  return parseHash(digest.sha256(''));
}

/**
 * Returns the complete subtrees that a range consists of, from left to right: at most two for each level. In a range
 * that a tree or a proof hashes as one, they get smaller to the right.
 */
export function subtreesOf({ begin, end }: LeafRange): readonly Subtree[] {
  const subtrees: Subtree[] = [];
  for (let at = begin; at < end; ) {
    let level = 0;
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level += 1;
    subtrees.push({ level, index: at / 2 ** level });
    at += 2 ** level;
  }
  return subtrees;
}

/** Returns the hash of a range from those of its complete subtrees, from left to right. */
export function rangeHash(digest: Digest, hashes: readonly Hash[]): Hash {
  const last = hashes.at(-1);
  if (last === undefined) return emptyRoot(digest);
  return hashes.slice(0, -1).reduceRight((right, left) => nodeHash(digest, left, right), last);
}

/** The complete subtrees of a growing tree. */
export interface Growing {
  /** How many leaves the tree has. */
  readonly size: number;
  /** The hashes of `subtreesOf({ begin: 0, end: size })`. */
  readonly hashes: readonly Hash[];
}

export const NO_TREE: Growing = { size: 0, hashes: [] };

/** Adds a leaf. Calls `completed` for each subtree of two leaves or more that it completes, smallest first. */
export function grow(
  digest: Digest,
  { size, hashes }: Growing,
  leaf: Hash,
  completed: (subtree: Subtree, hash: Hash) => void,
): Growing {
  const kept = [...hashes];
  let hash = leaf;
  let index = size;
  for (let level = 0; index % 2 === 1; ) {
    const left = kept.pop();
    if (left === undefined) throw new TypeError(`A tree of ${size} leaves has more complete subtrees`);
    hash = nodeHash(digest, left, hash);
    index = (index - 1) / 2;
    level += 1;
    completed({ level, index }, hash);
  }
  return { size: size + 1, hashes: [...kept, hash] };
}

/** The largest power of two below n, for n of 2 or more. */
function splitOf(n: number): number {
  let split = 1;
  while (2 * split < n) split *= 2;
  return split;
}

/**
 * Returns the ranges whose hashes prove that leaf `index` is in the tree of `size` leaves, in the order of RFC 6962,
 * section 2.1.1.
 */
export function inclusionRanges(index: number, size: number): readonly LeafRange[] {
  const ranges: LeafRange[] = [];
  for (let [begin, end] = [0, size]; end - begin > 1; ) {
    const middle = begin + splitOf(end - begin);
    if (index < middle) {
      ranges.push({ begin: middle, end });
      end = middle;
    } else {
      ranges.push({ begin, end: middle });
      begin = middle;
    }
  }
  return ranges.toReversed();
}

/**
 * Returns the ranges whose hashes prove that the tree of `from` leaves is a prefix of that of `to` leaves, in the order
 * of RFC 6962, section 2.1.2. `from` is at least 1.
 */
export function consistencyRanges(from: number, to: number): readonly LeafRange[] {
  const ranges: LeafRange[] = [];
  let [begin, end] = [0, to];
  // The old tree's own root is left out while it is a subtree of the new tree: the verifier has it.
  while (end !== from) {
    const middle = begin + splitOf(end - begin);
    if (from <= middle) {
      ranges.push({ begin: middle, end });
      end = middle;
    } else {
      ranges.push({ begin, end: middle });
      begin = middle;
    }
  }
  if (begin > 0) ranges.push({ begin, end });
  return ranges.toReversed();
}
