// refused: TS2375
export const options: { limit?: number } = { limit: undefined };
