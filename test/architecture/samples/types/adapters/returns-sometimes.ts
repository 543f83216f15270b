// refused: TS7030
export function sign(n: number) {
  if (n > 0) return '+';
}
