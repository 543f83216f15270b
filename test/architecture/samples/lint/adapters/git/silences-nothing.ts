// refused: Unused oxlint-disable directive
// oxlint-disable-next-line no-console
export const a = 1;
