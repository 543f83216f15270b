// refused: TS2591
process.exit();
