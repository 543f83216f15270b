// refused: eslint(no-console)
console.log('listening');
