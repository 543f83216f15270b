// refused: typescript(no-unsafe-member-access)
export function nameIn(text: string): unknown {
  return JSON.parse(text).name;
}
