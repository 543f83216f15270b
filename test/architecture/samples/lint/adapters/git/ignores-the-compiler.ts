// refused: typescript(ban-ts-comment)
// @ts-ignore
export const count: number = 'a';
