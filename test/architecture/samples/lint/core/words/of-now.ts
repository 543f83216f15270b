// refused: strata(plain-words-in-comments)
/** The layers of now. */
export const a = 1;
