// refused: strata(plain-words-in-texts)
export const a = 'Send fewer at once';
