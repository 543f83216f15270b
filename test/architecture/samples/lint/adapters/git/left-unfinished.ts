// refused: eslint(no-warning-comments)
// TODO: finish
export const finished = false;
