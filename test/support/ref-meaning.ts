/**
 * What a text names in a set of refs, and what `<ref>/<path>` does: a small model, written from docs/interface.md and
 * not from the code that it is compared with.
 */
export interface RefSet {
  /** Ids by full name. */
  readonly refs: Readonly<Record<string, string>>;
  /** The short name. */
  readonly defaultBranch: string;
}

/** Returns the id that the text means, whether there is such an object or not; null for nothing. */
export function meaningOf({ refs, defaultBranch }: RefSet, text: string): string | null {
  const at = (name: string): string | null => (Object.hasOwn(refs, name) ? (refs[name] ?? null) : null);
  if (/^[0-9a-f]{40}$/i.test(text)) return text.toLowerCase();
  if (text === 'HEAD' || text === '') return at(`refs/heads/${defaultBranch}`);
  if (text.startsWith('refs/')) return at(text);
  return at(`refs/heads/${text}`) ?? at(`refs/tags/${text}`);
}

/** Returns the ref and the path that an address means; null for nothing. */
export function addressMeaning(
  set: RefSet,
  address: string,
): { readonly id: string | null; readonly path: string } | null {
  const segments = address.split('/');
  const [first = ''] = segments;
  if (/^[0-9a-f]{40}$/i.test(first) || first === 'HEAD') {
    return { id: meaningOf(set, first), path: segments.slice(1).join('/') };
  }
  for (let length = segments.length; length > 0; length -= 1) {
    const text = segments.slice(0, length).join('/');
    if (first === 'refs' && length < 2) return null;
    const id = meaningOf(set, text);
    if (id !== null) return { id, path: segments.slice(length).join('/') };
  }
  return null;
}
