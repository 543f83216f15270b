// refused: format
export const a = { "b" : 1 }
