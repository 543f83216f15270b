// refused: strata(no-current-date)
export const now = new Date();
