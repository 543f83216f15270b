// refused: strata(handlers-only-translate)
interface Context {
  readonly entities: { barrier(): Promise<object> };
}

export async function getHead({ context }: { readonly context: Context }): Promise<object> {
  const { ['entities']: found } = context;
  return found.barrier();
}
