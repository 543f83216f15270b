// refused: unicorn(no-abusive-eslint-disable)
/* eslint-disable */
export const a = 1;
