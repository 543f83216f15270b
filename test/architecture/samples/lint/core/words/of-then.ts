// refused: strata(plain-words-in-comments)
/** The refs of then. */
export const a = 1;
