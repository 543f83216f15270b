// refused: TS2304
export const id = crypto.randomUUID();
