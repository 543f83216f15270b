// refused: strata(plain-words-in-texts)
export const a = (n: number): string => `Send ${n} of them anew`;
