// refused: strata(plain-words-in-comments)
/** The other one waits meanwhile. */
export const a = 1;
