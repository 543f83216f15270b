// refused: TS4114
export class OwnError extends Error {
  name = 'OwnError';
}
