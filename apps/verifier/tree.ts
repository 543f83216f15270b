/**
 * Merkle trees: RFC 6962, section 2.1, and the proofs of RFC 9162, section 2.1.
 *
 * Invariants: a growing tree is kept as its complete subtrees, so memory grows with the logarithm of its leaves.
 */
import crypto from 'node:crypto';

/** 32 bytes as binary text (latin1), which compares and joins faster than buffers. */
export type Hash = string;

/** `crypto.hash` is faster; Node has it since 20.12. */
const sha256: (bytes: string | Buffer) => Hash =
  'hash' in crypto
    ? (bytes) => crypto.hash('sha256', bytes, 'binary')
    : (bytes) => crypto.createHash('sha256').update(bytes).digest('binary');

export const EMPTY_ROOT: Hash = sha256('');

/** Returns the hash of a leaf with this content, written as UTF-8. */
export function leafHash(content: string): Hash {
  return sha256(`\0${content}`);
}

export function nodeHash(left: Hash, right: Hash): Hash {
  return sha256(Buffer.from(`\u0001${left}${right}`, 'binary'));
}

/** A complete subtree of `2 ** level` leaves. */
interface Subtree {
  readonly level: number;
  /** It begins at leaf `index * 2 ** level`. */
  readonly index: number;
  readonly hash: Hash;
}

/** The leaves from `begin` up to but not including `end`, as complete subtrees from left to right. */
export interface Range {
  readonly begin: number;
  readonly end: number;
  readonly subtrees: readonly Subtree[];
}

export function emptyRange(begin: number): Range {
  return { begin, end: begin, subtrees: [] };
}

/**
 * Adds the next subtree, and joins what became complete by it. Throws TypeError for one that does not begin at the end.
 */
function joined({ begin, end, subtrees }: Range, added: Subtree): Range {
  if (added.index * 2 ** added.level !== end) throw new TypeError('A subtree begins where the range ends');
  const kept = [...subtrees];
  let top = added;
  for (let left = kept.at(-1); left?.level === top.level && left.index % 2 === 0; left = kept.at(-1)) {
    kept.pop();
    top = { level: top.level + 1, index: left.index / 2, hash: nodeHash(left.hash, top.hash) };
  }
  return { begin, end: end + 2 ** added.level, subtrees: [...kept, top] };
}

export function withLeaf(range: Range, leaf: Hash): Range {
  return joined(range, { level: 0, index: range.end, hash: leaf });
}

/** Returns the range with the one right behind it. */
export function withRange(range: Range, next: Range): Range {
  return next.subtrees.reduce(joined, range);
}

/**
 * Returns the range of these leaves from the hashes of its maximal subtrees, from left to right; null if their number
 * is another one.
 */
export function rangeOf(begin: number, end: number, hashes: readonly Hash[]): Range | null {
  let range = emptyRange(begin);
  for (const hash of hashes) {
    const at = range.end;
    let level = 0;
    while (at % 2 ** (level + 1) === 0 && at + 2 ** (level + 1) <= end) level += 1;
    if (at + 2 ** level > end) return null;
    range = { begin, end: at + 2 ** level, subtrees: [...range.subtrees, { level, index: at / 2 ** level, hash }] };
  }
  return range.end === end ? range : null;
}

/** Returns the root of a tree: of a range that begins at leaf 0. */
export function rootOf({ subtrees }: Range): Hash {
  const last = subtrees.at(-1);
  if (last === undefined) return EMPTY_ROOT;
  return subtrees.slice(0, -1).reduceRight((right, { hash }) => nodeHash(hash, right), last.hash);
}

export interface TreeHead {
  readonly size: number;
  readonly root: Hash;
}

/**
 * Returns whether the proof shows that the tree of `to` leaves begins with that of `from` leaves: RFC 9162, section
 * 2.1.4.2.
 */
export function isConsistent(from: TreeHead, to: TreeHead, proof: readonly Hash[]): boolean {
  if (from.size > to.size) return false;
  if (from.size === to.size) return proof.length === 0 && from.root === to.root;
  if (from.size === 0) return proof.length === 0 && from.root === EMPTY_ROOT;
  return subtreesProved(from, to, proof) !== null;
}

/**
 * Returns the leaves of the older tree, of 1 leaf or more and fewer than the newer one, as the proof between the two
 * has them: every hash that stands to the left in both trees is one of its complete subtrees. Null for a wrong proof.
 */
export function provedPrefix(from: TreeHead, to: TreeHead, proof: readonly Hash[]): Range | null {
  const subtrees = subtreesProved(from, to, proof);
  return subtrees === null ? null : rangeOf(0, from.size, subtrees);
}

/** From left to right. */
function subtreesProved(from: TreeHead, to: TreeHead, proof: readonly Hash[]): readonly Hash[] | null {
  const isWhole = Number.isInteger(Math.log2(from.size));
  const [first, ...rest] = isWhole ? [from.root, ...proof] : proof;
  if (first === undefined) return null;
  const subtrees = [first];
  let [older, newer] = [first, first];
  let [node, last] = [from.size - 1, to.size - 1];
  const up = (): void => void ([node, last] = [Math.floor(node / 2), Math.floor(last / 2)]);
  while (node % 2 === 1) up();
  for (const hash of rest) {
    if (last === 0) return null;
    if (node % 2 === 1 || node === last) {
      subtrees.unshift(hash);
      older = nodeHash(hash, older);
      newer = nodeHash(hash, newer);
      while (node % 2 === 0 && node !== 0) up();
    } else {
      newer = nodeHash(newer, hash);
    }
    up();
  }
  return last === 0 && older === from.root && newer === to.root ? subtrees : null;
}

/** Returns whether the proof shows that a leaf is in the tree: RFC 9162, section 2.1.3.2. */
export function isIncluded(
  leaf: { readonly index: number; readonly hash: Hash },
  tree: { readonly size: number; readonly root: Hash },
  proof: readonly Hash[],
): boolean {
  if (leaf.index < 0 || leaf.index >= tree.size) return false;
  let [node, last] = [leaf.index, tree.size - 1];
  let root = leaf.hash;
  const up = (): void => void ([node, last] = [Math.floor(node / 2), Math.floor(last / 2)]);
  for (const hash of proof) {
    if (last === 0) return false;
    if (node % 2 === 1 || node === last) {
      root = nodeHash(hash, root);
      while (node % 2 === 0 && node !== 0) up();
    } else {
      root = nodeHash(root, hash);
    }
    up();
  }
  return last === 0 && root === tree.root;
}

/** Reads a hash in base64 with padding; null for any other text. */
export function hashOfBase64(text: string): Hash | null {
  if (!/^[A-Za-z0-9+/]{43}=$/.test(text)) return null;
  const bytes = Buffer.from(text, 'base64');
  // The last digit has two bits that mean nothing.
  return bytes.toString('base64') === text ? bytes.toString('binary') : null;
}

export function base64Of(hash: Hash): string {
  return Buffer.from(hash, 'binary').toString('base64');
}
