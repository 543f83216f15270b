// refused: TS2591
export const bytes = Buffer.from('a');
