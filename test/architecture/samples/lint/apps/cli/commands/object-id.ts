// accepted
export const NO_OBJECT = '0'.repeat(40);
