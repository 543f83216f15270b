// refused: TS2591
export const port = process.env['STRATA_PORT'];
