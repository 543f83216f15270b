// refused: strata(plain-words-in-comments)
/** As `count`, for branches. */
export const a = 1;
