// refused: strata(plain-words-in-comments)
/** Kept for ever. */
export const a = 1;
