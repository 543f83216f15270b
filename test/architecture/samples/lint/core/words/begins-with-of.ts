// refused: strata(plain-words-in-comments)
/** Of the last event. */
export const a = 1;
