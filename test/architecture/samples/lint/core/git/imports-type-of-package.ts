// refused: eslint(no-restricted-imports)
import type { Kysely } from 'kysely';

export type Database = Kysely<unknown>;
