// refused: eslint(preserve-caught-error)
export function tryIt(run: () => void): void {
  try {
    run();
  } catch (error) {
    throw new Error('It failed');
  }
}
