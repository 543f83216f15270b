/**
 * Splits `<ref>/<path>` of an address, where both may hold slashes, and names a ref so that it is split again.
 *
 * Must stay true: the longest ref wins, so an address names one thing only. `addressedRef` returns a name that
 * `splitRefPath` finds again before the same path, whatever other refs there are; every link is made with it.
 */
import { decodeUtf8, encodeUtf8 } from '../../git/utf8.ts';
import { REF_NAME_BYTES_MAX } from '../../kernel/limits.ts';
import { parseObjectId } from '../../kernel/ids.ts';
import type { FoundRepository } from '../accounts/repositories.ts';
import { findRef } from './resolve-ref.ts';

export interface RefPath {
  /** A branch, a tag or a full commit id, as the other use cases of reading take it. */
  readonly ref: string;
  /** Names from the root down, as bytes. */
  readonly names: readonly Uint8Array[];
}

/** Null if no start of the segments names a ref, or has the form of a commit id. */
export function splitRefPath(repository: FoundRepository, segments: readonly Uint8Array[]): RefPath | null {
  for (const { length, ref } of candidates(segments).toReversed()) {
    if (findRef(repository, ref) !== null) return { ref, names: segments.slice(length) };
  }
  const [first] = segments;
  const id = first === undefined ? null : decodeUtf8(first);
  return id === null || parseObjectId(id.toLowerCase()) === null ? null : { ref: id, names: segments.slice(1) };
}

/** Returns the ref's own name, or its full one if another ref would be found first in an address with this path. */
export function addressedRef(repository: FoundRepository, ref: string, names: readonly Uint8Array[]): string {
  const path = names.slice(0, NAMES_MAX);
  const isFound = (name: string): boolean => splitRefPath(repository, [...segmentsOf(name), ...path])?.ref === name;
  if (isFound(ref)) return ref;
  return (
    [`refs/heads/${ref}`, `refs/tags/${ref}`].find((name) => findRef(repository, name) !== null && isFound(name)) ?? ref
  );
}

/** A ref's name has at most as many components as it has bytes; one byte in two is a slash. */
const NAMES_MAX = REF_NAME_BYTES_MAX / 2;

/** Returns the segments' starts that could name a ref, from the shortest to the longest. */
function candidates(segments: readonly Uint8Array[]): readonly { readonly length: number; readonly ref: string }[] {
  const found: { readonly length: number; readonly ref: string }[] = [];
  let ref = '';
  for (const [index, segment] of segments.entries()) {
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
