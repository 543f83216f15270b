// refused: strata(object-id-length-in-one-place)
export const HEAD = /^ref ([0-9a-f]{40})$/;
