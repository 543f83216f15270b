// refused: TS7029
export function size(kind: 'a' | 'b', log: (text: string) => void): void {
  switch (kind) {
    case 'a':
      log('a');
    case 'b':
      log('b');
  }
}
