// refused: TS2304
export const timer = setTimeout(() => 1, 2);
