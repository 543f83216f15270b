// refused: TS2550
export const groups = Object.groupBy([1, 2], (n) => (n > 1 ? 'many' : 'one'));
