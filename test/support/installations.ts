/** Installations between which a service can be moved: a database and a data directory, with no server running. */
import assert from 'node:assert/strict';
import pg from 'pg';
import type { TestContext } from 'vitest';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { cleanUp } from './cleanup.ts';
import { keepLog } from './log.ts';
import { exportText, fillOddLog } from './log-files.ts';
import { testDatabase } from './postgres.ts';
import { type Finished, type Strata, tryAdmin } from './strata.ts';
import { tempDir } from './temp-dir.ts';

const MASTER_KEY = 'cd'.repeat(32);

export interface Installation extends Pick<Strata, 'env'> {
  /** Connects as the owner of the database. */
  readonly connectionString: string;
}

/** A new, empty installation: a database and a data directory, with no server running. */
export async function newInstallation(context: TestContext): Promise<Installation> {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const { connectionString, servingConnectionString } = database;
  const env = {
    PATH: process.env['PATH'] ?? '',
    STRATA_DATABASE_URL: servingConnectionString,
    STRATA_DATABASE_OWNER_URL: connectionString,
    STRATA_DATA_DIR: await tempDir(context),
    STRATA_MASTER_KEY: MASTER_KEY,
    STRATA_LOG_LEVEL: 'info',
  };
  return { connectionString, env };
}

/**
 * Runs `work` on the installation's log and closes every connection after it: an import refuses to run beside one,
 * since it takes the connection for a server.
 */
export async function onLog<Result>(
  { connectionString }: Installation,
  work: (store: ReturnType<typeof createPostgresEventStore>) => Promise<Result>,
): Promise<Result> {
  const store = createPostgresEventStore({ connectionString, log: keepLog() });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

export const textOf = (installation: Installation): Promise<string> => onLog(installation, exportText);

export async function query(installation: Installation, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: installation.connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** Runs the command, which must end by SIGKILL at the named step. */
export async function killedAt(installation: Installation, point: string, args: readonly string[]): Promise<void> {
  const killed = await tryAdmin({ env: { ...installation.env, STRATA_FAILPOINT: point } }, args);
  assert.equal(killed.code, null, `${point}: ${killed.stdout}${killed.stderr}`);
}

export async function filledInstallation(context: TestContext, events: number): Promise<Installation> {
  const installation = await newInstallation(context);
  await onLog(installation, (store) => fillOddLog(store, events));
  return installation;
}

export const refusedWith = (finished: Finished, words: RegExp): void => {
  assert.equal(finished.code, 1, finished.stdout);
  assert.match(finished.stderr, words);
};
