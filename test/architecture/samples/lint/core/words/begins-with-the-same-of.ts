// refused: strata(plain-words-in-comments)
/** The same of a branch. */
export const a = 1;
