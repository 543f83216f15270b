/** A copy of a server's database, as a backup that was restored. */
import { Pool } from 'pg';
import { cleanUp, type Ending } from './cleanup.ts';
import type { SharedParts } from './strata-on-postgres.ts';

/** Copies the database of stopped nodes. Returns the settings of nodes on the copy, which is dropped at the end. */
export async function restoredDatabase({ env }: Pick<SharedParts, 'env'>, ending: Ending) {
  const [owner, serving] = [env['STRATA_DATABASE_OWNER_URL'] ?? '', env['STRATA_DATABASE_URL'] ?? ''];
  const name = new URL(owner).pathname.slice(1);
  const of = (url: string, database: string): string => Object.assign(new URL(url), { pathname: `/${database}` }).href;
  const run = async (text: string): Promise<void> => {
    const pool = new Pool({ connectionString: of(owner, 'postgres') });
    try {
      await pool.query(text);
    } finally {
      await pool.end();
    }
  };
  await run(`CREATE DATABASE ${name}_restored TEMPLATE ${name}`);
  cleanUp(ending, () => run(`DROP DATABASE ${name}_restored WITH (FORCE)`));
  const copy = `${name}_restored`;
  return { STRATA_DATABASE_URL: of(serving, copy), STRATA_DATABASE_OWNER_URL: of(owner, copy) };
}
