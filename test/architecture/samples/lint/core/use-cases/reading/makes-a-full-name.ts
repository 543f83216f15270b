// refused: strata(refs-resolved-in-one-place)
export function fullNames(text: string): readonly string[] {
  return ['refs/heads/', 'refs/tags/'].map((folder) => folder + text).concat(`refs/heads/${text}`);
}
