// refused: strata(plain-words-in-comments)
/** Reads the list anew. */
export const a = 1;
