// refused: unicorn(prefer-node-protocol)
import { readFileSync } from 'fs';

export const text = readFileSync('a', 'utf8');
