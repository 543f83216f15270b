// refused: organizeImports
import { b } from './formatted.ts';
import { a } from './a.ts';

export const c = [a, b];
