// refused: strata(handlers-only-translate)
interface Context {
  readonly readModels: { read(name: string): Promise<object> };
}

export async function getRepository({ context }: { readonly context: Context }): Promise<object> {
  return context.readModels.read('repositories');
}
