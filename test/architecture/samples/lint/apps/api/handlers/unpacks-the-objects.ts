// refused: strata(handlers-only-translate)
interface Context {
  readonly objects: { open(id: string): Promise<object> };
}

export async function getContents({ context: { objects } }: { readonly context: Context }): Promise<object> {
  return objects.open('1');
}
