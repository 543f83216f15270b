// refused: eslint(prefer-const)
let limit = 1;
export const twice = limit * 2;
