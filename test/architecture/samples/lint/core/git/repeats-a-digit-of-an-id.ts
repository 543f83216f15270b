// refused: strata(object-id-length-in-one-place)
export const NO_OBJECT = '0'.repeat(40);
