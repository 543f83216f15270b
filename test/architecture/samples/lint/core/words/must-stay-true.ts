// refused: strata(plain-words-in-comments)
/**
 * Counts.
 *
 * Must stay true: it never falls.
 */
export const a = 1;
