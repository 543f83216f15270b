// refused: typescript(await-thenable)
export async function count(): Promise<number> {
  return await 1;
}
