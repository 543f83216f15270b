// refused: strata(comments-fit-in-lines)
/** A comment of more than a hundred and twenty columns, which A comment of more than a hundred and twenty columns, which is too long. */
export const a = 1;
