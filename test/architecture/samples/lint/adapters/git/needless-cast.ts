// refused: typescript(no-unnecessary-type-assertion)
export function parseName(name: string): string {
  return name as string;
}
