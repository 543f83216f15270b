// refused: strata(plain-words-in-comments)
/** A text without digits is none. */
export const a = 1;
