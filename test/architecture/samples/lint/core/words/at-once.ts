// refused: strata(plain-words-in-comments)
/** Returns at once. */
export const a = 1;
