// refused: typescript(prefer-promise-reject-errors)
export const lost = Promise.reject('lost');
