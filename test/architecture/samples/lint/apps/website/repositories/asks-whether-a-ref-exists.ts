// refused: strata(refs-resolved-in-one-place)
export function isTag(refs: ReadonlySet<string>, tag: string): boolean {
  return refs.has('refs/tags/' + tag);
}
