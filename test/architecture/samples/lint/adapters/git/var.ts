// refused: eslint(no-var)
export var count = 1;
