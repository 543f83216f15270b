// refused: TS6133
import { readFile } from 'node:fs/promises';

export const a = 1;
