// refused: typescript(consistent-type-imports)
import { Stats } from 'node:fs';

export type Size = Stats['size'];
