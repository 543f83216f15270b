// refused: strata(refs-resolved-in-one-place)
interface Repository {
  readonly entity: { readonly state: { readonly refs: ReadonlyMap<string, string> } };
}

export function tipOf({ entity }: Repository, text: string): string | undefined {
  return entity.state.refs.get(text);
}
