// refused: TS18047
export function size(text: string | null): number {
  return text.length;
}
