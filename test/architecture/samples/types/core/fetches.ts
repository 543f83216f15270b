// refused: TS2304
export const answer = fetch('https://example.org/');
