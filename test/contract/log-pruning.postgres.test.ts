/** Pruning on PostgreSQL. */
import { createPostgresLogPruning } from '../../adapters/postgres/log-pruning.ts';
import { createPool } from '../../adapters/postgres/pool.ts';
import { openDatabase, openStore } from '../adapters/postgres/open-store.ts';
import { cleanUp } from '../support/cleanup.ts';
import { keepLog } from '../support/log.ts';
import { logPruningContract } from './log-pruning.ts';

logPruningContract('PostgreSQL', async (context) => {
  const connectionString = await openDatabase(context);
  const { store } = openStore(context, connectionString);
  const pool = createPool({ connectionString, log: keepLog() });
  cleanUp(context, () => pool.end());
  return { store, pruning: createPostgresLogPruning(pool) };
});
