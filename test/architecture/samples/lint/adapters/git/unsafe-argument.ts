// refused: typescript(no-unsafe-argument)
export function size(text: string): number {
  return Number.parseInt(JSON.parse(text), 10);
}
