/**
 * Refs that cannot exist together, because one's name is a folder in the other's: `a` and `a/b`.
 *
 * Invariants: the check is on the state after the whole push, so that one push may delete `a` and create `a/b`. The
 * work is linear in the bytes of the changed names, times a logarithm, however deep they are nested and however many
 * refs exist. If one such pair were accepted, every clone of the repository would fail.
 */
import { inParts, type Steps } from '../kernel/turns.ts';
import type { RefName } from './ref-name.ts';
import { byteOrderRank, sortUtf8 } from './utf8.ts';

/** A created ref and a ref that it collides with: one whose name is a folder of its name, or the reverse. */
export interface RefCollision {
  readonly ref: RefName;
  readonly with: RefName;
}

export interface RefChanges {
  /** Every ref before the push, in byte order, without collisions. */
  readonly existing: readonly RefName[];
  /** Names that the push creates and that do not exist yet, each once. */
  readonly creates: readonly RefName[];
  /** Names that the push deletes, each once. Must not contain a delete that will be refused for another reason. */
  readonly deletes: readonly RefName[];
}

/**
 * Returns the created refs that would collide in the state after the push, in byte order, each with one ref that it
 * collides with. If two created refs collide, both are returned. The created refs that are not returned collide with
 * nothing.
 */
export function* refCollisions(changes: RefChanges): Steps<readonly RefCollision[]> {
  const creates = sortUtf8(changes.creates);
  const deletes = sortUtf8(changes.deletes);
  const inExisting = new Descent(changes.existing, deletes);
  const inCreates = new Descent(creates, []);
  const collisions: RefCollision[] = [];
  let before = '';
  yield* inParts(creates, (ref) => {
    const shared = sharedFolders(before, ref);
    // Both are asked for each name: what they know of the name before is of the same one.
    const created = inCreates.collidingWith(ref, shared);
    const other = inExisting.collidingWith(ref, shared) ?? created;
    if (other !== null) collisions.push({ ref, with: other });
    before = ref;
  });
  return collisions;
}

const SLASH = 0x2f;

/** Returns how many folders, from the root, two names have in common. */
function sharedFolders(a: string, b: string): number {
  let folders = 0;
  for (let at = 0; at < a.length; at += 1) {
    const unit = a.charCodeAt(at);
    if (unit !== b.charCodeAt(at)) break;
    if (unit === SLASH) folders += 1;
  }
  return folders;
}

/** A folder of the name that was looked for last. */
interface Folder {
  /** Where the names in it lie, among all names and among the deletes. */
  readonly range: Range;
  readonly gone: Range;
  /** The length of its name with the slash: where the next component starts. */
  readonly length: number;
  /** A name that is kept and that is this folder's, or that of one around it; null if there is none. */
  readonly blockedBy: RefName | null;
}

/**
 * Looks for what collides with names that come in order. It descends the sorted names like a tree: at each `/` of a
 * name the range narrows to the names in that folder. So each step compares the characters of one component only,
 * because all names in the range share what precedes it; and names in one folder share the descent to it.
 */
class Descent {
  readonly #names: readonly RefName[];
  readonly #deletes: readonly RefName[];
  readonly #deleted: ReadonlySet<RefName>;
  /** The folders of the name before, as far as any name lies in them. */
  readonly #folders: Folder[];

  constructor(names: readonly RefName[], deletes: readonly RefName[]) {
    this.#names = names;
    this.#deletes = deletes;
    this.#deleted = new Set(deletes);
    const [range, gone] = [
      { from: 0, to: names.length },
      { from: 0, to: deletes.length },
    ];
    this.#folders = [{ range, gone, length: 0, blockedBy: null }];
  }

  /** Returns a name that collides with `ref` and is not deleted, or null. `shared`: folders as of the name before. */
  collidingWith(ref: RefName, shared: number): RefName | null {
    const folders = this.#folders;
    if (folders.length > shared + 1) folders.length = shared + 1;
    for (;;) {
      const innermost = folders[folders.length - 1];
      if (innermost === undefined || innermost.blockedBy !== null) return innermost?.blockedBy ?? null;
      if (innermost.range.from >= innermost.range.to) return null;
      const slash = ref.indexOf('/', innermost.length);
      const below = this.#enter(innermost, ref, slash === -1 ? ref.length : slash);
      if (slash === -1) return firstKept(this.#names, below.range, below.gone, this.#deleted);
      folders.push(below);
    }
  }

  /** The folder `ref[0, end)`. */
  #enter({ range, gone, length: start }: Folder, ref: RefName, end: number): Folder {
    const names = this.#names;
    const at = lowerBound(names, range, ref, start, end, -1);
    const same = at < range.to ? names[at] : undefined;
    const isSame = end < ref.length && same?.length === end && sharesComponent(same, ref, start, end);
    return {
      range: folder(names, { from: at, to: range.to }, ref, start, end),
      gone: folder(this.#deletes, gone, ref, start, end),
      length: end + 1,
      blockedBy: isSame && same !== undefined && !this.#deleted.has(same) ? same : null,
    };
  }
}

/** The names from index `from` up to but not including `to`. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** Returns the names of the range that are in the folder `ref[0, end)`: they continue with a slash. */
function folder(names: readonly RefName[], range: Range, ref: string, start: number, end: number): Range {
  return {
    from: lowerBound(names, range, ref, start, end, SLASH),
    to: lowerBound(names, range, ref, start, end, SLASH + 1),
  };
}

/**
 * Returns the index of the first name in the range that is not before `ref[0, end)` followed by the code unit `next`
 * (-1: by nothing). All names of the range and `ref` must share their first `start` code units.
 */
function lowerBound(
  names: readonly RefName[],
  range: Range,
  ref: string,
  start: number,
  end: number,
  next: number,
): number {
  let { from, to } = range;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (isBefore(names[middle] ?? '', ref, start, end, next)) from = middle + 1;
    else to = middle;
  }
  return from;
}

function isBefore(name: string, ref: string, start: number, end: number, next: number): boolean {
  for (let at = start; at < end; at++) {
    if (at >= name.length) return true;
    const left = name.charCodeAt(at);
    const right = ref.charCodeAt(at);
    if (left !== right) return byteOrderRank(left) < byteOrderRank(right);
  }
  return next !== -1 && (name.length === end || byteOrderRank(name.charCodeAt(end)) < next);
}

function sharesComponent(name: string, ref: string, start: number, end: number): boolean {
  for (let at = start; at < end; at++) if (name.charCodeAt(at) !== ref.charCodeAt(at)) return false;
  return true;
}

/** Returns a name of the range that still exists after the push; `gone` is the same folder's range in the deletes. */
function firstKept(
  names: readonly RefName[],
  range: Range,
  gone: Range,
  deleted: ReadonlySet<RefName>,
): RefName | null {
  // Skips at most as many names as the push deletes in this folder.
  const last = Math.min(range.to, range.from + (gone.to - gone.from) + 1);
  for (let at = range.from; at < last; at++) {
    const name = names[at];
    if (name !== undefined && !deleted.has(name)) return name;
  }
  return null;
}
