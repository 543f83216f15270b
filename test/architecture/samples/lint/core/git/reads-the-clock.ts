// refused: eslint(no-restricted-properties)
export const now = Date.now();
