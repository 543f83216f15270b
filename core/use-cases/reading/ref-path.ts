/**
 * Splits `<ref>/<path>` of an address, where both may hold slashes, and names a ref so that it is split again.
 *
 * Invariants: the first segment says whether an id, `HEAD` or a full name stands there, as in resolve-ref.ts; else the
 * longest branch or tag is meant, and a short id if there is none, so an address names one thing only. `addressedRef`
 * returns a name that `splitRefPath` finds again before the same path, whatever other refs there are; every link is
 * made with it. Both cost little for any address, since the components of a ref are bounded.
 */
import { decodeUtf8, encodeUtf8 } from '../../git/utf8.ts';
import { REF_NAME_BYTES_MAX } from '../../kernel/limits.ts';
import type { FoundRepository } from '../repositories/repositories.ts';
import { FULL, findRef, HEAD, idNamed, isContinued, isShortId } from './resolve-ref.ts';

/** Components of a ref's short name in an address of the website; deeper refs are read by other ways only. */
export const REF_ADDRESS_COMPONENTS_MAX = 64;

export interface RefPath {
  /** A text that names a ref or a commit, as resolve-ref.ts reads it. */
  readonly ref: string;
  /** Names from the root down, as bytes. */
  readonly names: readonly Uint8Array[];
}

/** Null if no start of the segments names a ref, or has the form of a full or short commit id. */
export function splitRefPath(repository: FoundRepository, segments: readonly Uint8Array[]): RefPath | null {
  const [head] = segments;
  const first = head === undefined ? null : decodeUtf8(head);
  if (first === null) return null;
  if (first === HEAD || idNamed(first) !== null) return { ref: first, names: segments.slice(1) };
  // A slash of the segment may be encoded: its first component decides, as if it were not.
  const [component = '', ...others] = first.split('/', 2);
  if (others.length > 0 && (component === HEAD || idNamed(component) !== null)) return null;
  const isFull = `${component}/` === FULL;
  const starts = candidates(segments, REF_ADDRESS_COMPONENTS_MAX + (isFull ? FULL_NAME_COMPONENTS : 0));
  const found = starts.findLast(({ ref }) => ref.startsWith(FULL) === isFull && findRef(repository, ref) !== null);
  if (found !== undefined) return { ref: found.ref, names: segments.slice(found.length) };
  return isShortId(repository, first) ? { ref: first, names: segments.slice(1) } : null;
}

/** How many components the full name of a branch has more than its short one. */
const FULL_NAME_COMPONENTS = 2;

/** Returns the ref's own name, or its full one if an address with this path would name something else. */
export function addressedRef(repository: FoundRepository, ref: string, names: readonly Uint8Array[]): string {
  const isFound = (name: string): boolean => splitRefPath(repository, [...segmentsOf(name), ...names])?.ref === name;
  if (isFound(ref)) return ref;
  const fullName = findRef(repository, ref)?.fullName;
  return fullName !== undefined && isFound(fullName) ? fullName : ref;
}

/**
 * Does what `addressedRef` does, for addresses with any path: those of links in a text, which nobody has followed yet.
 */
export function refOfAnyAddress(repository: FoundRepository, ref: string): string {
  const isShort = findRef(repository, ref) !== null && ref !== HEAD && !ref.startsWith(FULL);
  const fullName = isShort && isContinued(repository, ref) ? findRef(repository, ref)?.fullName : undefined;
  return fullName ?? addressedRef(repository, ref, []);
}

/** Returns the starts of the segments that could name a ref, from the shortest to the longest. */
function candidates(
  segments: readonly Uint8Array[],
  componentsMax: number,
): readonly { readonly length: number; readonly ref: string }[] {
  const found: { readonly length: number; readonly ref: string }[] = [];
  let ref = '';
  for (const [index, segment] of segments.slice(0, componentsMax).entries()) {
    const text = decodeUtf8(segment);
    ref = index === 0 ? (text ?? '') : `${ref}/${text ?? ''}`;
    if (text === null || ref.length > REF_NAME_BYTES_MAX) break;
    found.push({ length: index + 1, ref });
  }
  return found;
}

function segmentsOf(ref: string): readonly Uint8Array[] {
  return ref.split('/').map(encodeUtf8);
}
