// refused: TS2591
import { readFileSync } from 'node:fs';

export const text = readFileSync('a', 'utf8');
