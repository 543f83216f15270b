/**
 * Splits `<ref>/<path>` of an address, where both may hold slashes, and names a ref so that it is split again.
 *
 * Must stay true: the longest ref wins, so an address names one thing only. `addressedRef` returns a name that
 * `splitRefPath` finds again before the same path, whatever other refs there are; every link is made with it. Both cost
 * little for any address, since the components of a ref are bounded.
 */
import { decodeUtf8, encodeUtf8 } from '../../git/utf8.ts';
import { REF_ADDRESS_COMPONENTS_MAX, REF_NAME_BYTES_MAX } from '../../kernel/limits.ts';
import { parseObjectId } from '../../kernel/ids.ts';
import type { FoundRepository } from '../accounts/repositories.ts';

export interface RefPath {
  /** A branch, a tag or a full commit id, as the other use cases of reading take it. */
  readonly ref: string;
  /** Names from the root down, as bytes. */
  readonly names: readonly Uint8Array[];
}

/** Null if no start of the segments names a ref, or has the form of a commit id. */
export function splitRefPath(repository: FoundRepository, segments: readonly Uint8Array[]): RefPath | null {
  for (const { length, ref } of candidates(segments).toReversed()) {
    if (isRef(repository, ref)) return { ref, names: segments.slice(length) };
  }
  const [first] = segments;
  const id = first === undefined ? null : decodeUtf8(first);
  return id === null || parseObjectId(id.toLowerCase()) === null ? null : { ref: id, names: segments.slice(1) };
}

/** Returns the ref's own name, or its full one if another ref would be found first in an address with this path. */
export function addressedRef(repository: FoundRepository, ref: string, names: readonly Uint8Array[]): string {
  const isFound = (name: string): boolean => splitRefPath(repository, [...segmentsOf(name), ...names])?.ref === name;
  if (isFound(ref)) return ref;
  return [`refs/heads/${ref}`, `refs/tags/${ref}`].find((name) => isRef(repository, name) && isFound(name)) ?? ref;
}

/** Returns the starts of the segments that could name a ref, from the shortest to the longest. */
function candidates(segments: readonly Uint8Array[]): readonly { readonly length: number; readonly ref: string }[] {
  const found: { readonly length: number; readonly ref: string }[] = [];
  let ref = '';
  for (const [index, segment] of segments.slice(0, REF_ADDRESS_COMPONENTS_MAX).entries()) {
    const text = decodeUtf8(segment);
    ref = index === 0 ? (text ?? '') : `${ref}/${text ?? ''}`;
    if (text === null || ref.length > REF_NAME_BYTES_MAX) break;
    found.push({ length: index + 1, ref });
  }
  return found;
}

/** As `findRef` finds it, but without parsing: a page tries many starts of each of its many links. */
function isRef({ entity }: FoundRepository, name: string): boolean {
  const refs: { has(fullName: string): boolean } = entity.state.refs;
  if (refs.has(`refs/heads/${name}`) || refs.has(`refs/tags/${name}`)) return true;
  return /^refs\/(heads|tags)\//.test(name) && refs.has(name);
}

function segmentsOf(ref: string): readonly Uint8Array[] {
  return ref.split('/').map(encodeUtf8);
}
