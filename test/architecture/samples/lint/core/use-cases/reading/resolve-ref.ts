// accepted
export function tipNamed(refs: ReadonlyMap<string, string>, text: string): string | undefined {
  return refs.get(`refs/heads/${text}`) ?? refs.get(`refs/tags/${text}`);
}
