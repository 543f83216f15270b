// refused: eslint(no-restricted-imports)
export { z } from 'zod';
