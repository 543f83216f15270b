// refused: typescript(no-unsafe-assignment)
export function parse(text: string): string {
  const name: string = JSON.parse(text);
  return name;
}
