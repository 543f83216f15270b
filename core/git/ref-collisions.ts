/**
 * Refs that cannot exist together, because one's name is a folder in the other's: `a` and `a/b`.
 *
 * Must stay true: the check is on the state after the whole push, so that one push may delete `a` and create `a/b`. The
 * work is linear in the bytes of the changed names, times a logarithm, however deep they are nested and however many
 * refs exist. If one such pair were accepted, every clone of the repository would fail.
 */
import { byRefOrder, type RefName } from './ref-name.ts';
import { byteOrderRank } from './utf8.ts';

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
export function refCollisions(changes: RefChanges): readonly RefCollision[] {
  const creates = changes.creates.toSorted(byRefOrder);
  const deletes = changes.deletes.toSorted(byRefOrder);
  const deleted = new Set(deletes);
  const collisions: RefCollision[] = [];
  for (const ref of creates) {
    const other = collidingWith(ref, changes.existing, deletes, deleted) ?? collidingWith(ref, creates, [], NONE);
    if (other !== null) collisions.push({ ref, with: other });
  }
  return collisions;
}

const NONE: ReadonlySet<RefName> = new Set();
const SLASH = 0x2f;

/**
 * Returns a name that collides with `ref` and is not deleted, or null. Descends the sorted names like a tree: at each
 * `/` of `ref` the range narrows to the names in that folder. So each step compares the characters of one component
 * only, because all names in the range share what precedes it.
 */
function collidingWith(
  ref: RefName,
  names: readonly RefName[],
  deletes: readonly RefName[],
  deleted: ReadonlySet<RefName>,
): RefName | null {
  let range: Range = { from: 0, to: names.length };
  let gone: Range = { from: 0, to: deletes.length };
  let start = 0;
  while (range.from < range.to) {
    const slash = ref.indexOf('/', start);
    const end = slash === -1 ? ref.length : slash;
    const at = lowerBound(names, range, ref, start, end, -1);
    const same = at < range.to ? names[at] : undefined;
    if (slash !== -1 && same?.length === end && sharesComponent(same, ref, start, end) && !deleted.has(same)) {
      return same;
    }
    range = folder(names, range, ref, start, end);
    gone = folder(deletes, gone, ref, start, end);
    if (slash === -1) return firstKept(names, range, gone, deleted);
    start = end + 1;
  }
  return null;
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
