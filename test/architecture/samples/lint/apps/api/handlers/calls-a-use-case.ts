// accepted
interface Context {
  readonly entities: { barrier(): Promise<object> };
}

declare function findRepository(context: Context, name: string): Promise<object>;

export async function getRepository({ context }: { readonly context: Context }): Promise<object> {
  const objects = await findRepository(context, 'engine');
  return { objects };
}
