// accepted
type RefName = string & { readonly brand: unique symbol };

export const MAIN = 'refs/heads/main' as RefName;

export function parseRefName(text: string): RefName | null {
  return text.startsWith('refs/') ? (text as RefName) : null;
}

export function refName(text: string): RefName {
  if (!text.startsWith('refs/')) throw new TypeError('Not a ref name');
  return text as RefName;
}
