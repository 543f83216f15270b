// accepted
interface Context {
  readonly entities: { barrier(): Promise<object> };
}

export async function atHead({ entities }: Context): Promise<object> {
  const head = await entities.barrier();
  return head;
}
