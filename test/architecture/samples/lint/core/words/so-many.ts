// refused: strata(plain-words-in-comments)
/** Reads so many bytes. */
export const a = 1;
