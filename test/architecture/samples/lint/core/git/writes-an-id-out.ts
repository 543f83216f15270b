// refused: strata(object-id-length-in-one-place)
export const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
