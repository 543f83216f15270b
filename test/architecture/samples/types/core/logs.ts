// refused: TS2584
console.log('a');
