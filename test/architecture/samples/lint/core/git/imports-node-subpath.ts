// refused: eslint(no-restricted-imports)
import { readFile } from 'node:fs/promises';

export const text = readFile('a', 'utf8');
