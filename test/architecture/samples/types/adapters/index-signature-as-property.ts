// refused: TS4111
export const port = process.env.STRATA_PORT;
