// refused: TS2591
import { readFile } from 'node:fs/promises';

export const text = readFile('a', 'utf8');
