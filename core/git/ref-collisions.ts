/**
 * Refs that cannot stand beside each other: one's name is a folder of the other's (`a` and `a/b`).
 *
 * Must stay true: the verdict is on the state after the whole push, so that `a` may make way for `a/b` in one;
 * and the work is linear in the bytes of the changed names (times a logarithm), however deep they are nested and
 * however many refs exist. One pair let through stops every clone of the repository.
 */
import { byRefOrder, type RefName } from './ref-name.ts';
import { byteOrderRank } from './utf8.ts';

/** A created ref and one that would stand beside it: its folder, or a ref in the folder it would be. */
export interface RefCollision {
  readonly ref: RefName;
  readonly with: RefName;
}

export interface RefChanges {
  /** Every ref before the push, in byte order, without collisions. */
  readonly existing: readonly RefName[];
  /** Names the push brings that do not exist, each once. */
  readonly creates: readonly RefName[];
  /** Names it deletes, each once. A delete that will be refused on other grounds must not be among them. */
  readonly deletes: readonly RefName[];
}

/**
 * The created refs that would collide in the state after the push, in byte order, each with one culprit.
 * When two created refs collide with each other both are named; without those named, the rest collide with nothing.
 */
export function refCollisions(changes: RefChanges): readonly RefCollision[] {
  const creates = changes.creates.toSorted(byRefOrder);
  const deletes = changes.deletes.toSorted(byRefOrder);
  const deleted = new Set(deletes);
  const collisions: RefCollision[] = [];
  for (const ref of creates) {
    const culprit = collidingWith(ref, changes.existing, deletes, deleted) ?? collidingWith(ref, creates, [], NONE);
    if (culprit !== null) collisions.push({ ref, with: culprit });
  }
  return collisions;
}

const NONE: ReadonlySet<RefName> = new Set();
const SLASH = 0x2f;

/**
 * Descends the sorted names as if they were a tree: at each `/` of `ref` the range narrows to the names in that
 * folder, and only the characters of one component are compared, since all names in the range share the rest.
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

/** Names at `from` up to but not including `to`. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** The names of the range that lie in the folder `ref[0, end)`: they continue with a slash there. */
function folder(names: readonly RefName[], range: Range, ref: string, start: number, end: number): Range {
  return {
    from: lowerBound(names, range, ref, start, end, SLASH),
    to: lowerBound(names, range, ref, start, end, SLASH + 1),
  };
}

/**
 * The first name of the range that is not before `ref[0, end)` followed by the unit `next` (-1: by nothing).
 * All names of the range and `ref` share their first `start` units.
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

/** A name of the range that stays after the push; `gone` is the same folder's range among the deletes. */
function firstKept(
  names: readonly RefName[],
  range: Range,
  gone: Range,
  deleted: ReadonlySet<RefName>,
): RefName | null {
  // At most as many names are skipped as the push deletes in this folder.
  const last = Math.min(range.to, range.from + (gone.to - gone.from) + 1);
  for (let at = range.from; at < last; at++) {
    const name = names[at];
    if (name !== undefined && !deleted.has(name)) return name;
  }
  return null;
}
