// refused: eslint(no-restricted-globals)
export const names = Object.keys(globalThis);
