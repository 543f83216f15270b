/**
 * The size limits of objects that are held in memory: the same for objects that are pushed and for objects that are
 * read.
 *
 * Invariants: the check needs only an object's type and size, which are known before it is inflated. A blob has no
 * limit here, because it is streamed.
 */
import { MIB } from '../kernel/byte-units.ts';
import { OBJECT_ID_DIGITS } from '../kernel/ids.ts';
import { COMMIT_PARENTS_MAX } from '../kernel/limits.ts';
import type { ObjectInfo, ObjectType } from './objects.ts';

/**
 * The size of a commit, inflated, which ordinary repositories do not reach. A push with a larger object is refused, and
 * a larger one that an older version accepted is not read: as deltas, a pack of some kilobytes can hold gigabytes.
 */
export const COMMIT_BYTES_MAX = MIB;
/** The size of a tag, inflated, and of a tree. */
export const TAG_BYTES_MAX = MIB;
export const TREE_BYTES_MAX = 16 * MIB;

/** Returns how many bytes, inflated, an object of this type may have. */
export function objectBytesMax(type: ObjectType): number {
  switch (type) {
    case 'commit':
      return COMMIT_BYTES_MAX;
    case 'tag':
      return TAG_BYTES_MAX;
    case 'tree':
      return TREE_BYTES_MAX;
    case 'blob':
      return Number.POSITIVE_INFINITY;
  }
}

/** Returns one line about an object above its limit, or null. */
export function sizeFault({ id, type, sizeBytes }: ObjectInfo): string | null {
  const bytesMax = objectBytesMax(type);
  return sizeBytes > bytesMax ? `${type} ${id} has ${sizeBytes} bytes, at most ${bytesMax} are allowed` : null;
}

const TREE_LINE_BYTES = 'tree \n'.length + OBJECT_ID_DIGITS;
const PARENT_LINE_BYTES = 'parent \n'.length + OBJECT_ID_DIGITS;

/** A commit smaller than this cannot have too many parents. Internal: it follows from `COMMIT_PARENTS_MAX`. */
export const MANY_PARENTS_BYTES_MIN = TREE_LINE_BYTES + (COMMIT_PARENTS_MAX + 1) * PARENT_LINE_BYTES;

/** Returns one line about a commit with too many parents. */
export function parentsFault(id: string): string {
  return `commit ${id} has more than ${COMMIT_PARENTS_MAX} parents`;
}
