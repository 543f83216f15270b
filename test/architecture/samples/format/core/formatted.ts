// accepted
export const a = { b: 1 };
