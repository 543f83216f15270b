// refused: eslint(no-restricted-properties)
export const roll = Math.random();
