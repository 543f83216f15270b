/** Places a service can be moved between: a database and a data directory, nothing running. */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import pg from 'pg';
import { createPostgresEventStore } from '../../adapters/postgres/event-store.ts';
import { cleanUp } from './cleanup.ts';
import { keepLog } from './log.ts';
import { exportText, fillOddLog } from './log-files.ts';
import { testDatabase } from './postgres.ts';
import { type Finished, type Strata, tryAdmin } from './strata.ts';
import { tempDir } from './temp-dir.ts';

const MASTER_KEY = 'cd'.repeat(32);

export interface Place extends Pick<Strata, 'env'> {
  readonly connectionString: string;
}

/** Where a service may be: a new database and data directory, nothing running. */
export async function newPlace(context: TestContext): Promise<Place> {
  const database = await testDatabase();
  cleanUp(context, () => database.close());
  const { connectionString } = database;
  const env = {
    PATH: process.env['PATH'] ?? '',
    STRATA_DATABASE_URL: connectionString,
    STRATA_DATA_DIR: await tempDir(context),
    STRATA_MASTER_KEY: MASTER_KEY,
    STRATA_LOG_LEVEL: 'info',
  };
  return { connectionString, env };
}

/** Does something with the log of a place, and leaves no connection behind: an import takes one for a server. */
export async function onLog<Result>(
  { connectionString }: Place,
  work: (store: ReturnType<typeof createPostgresEventStore>) => Promise<Result>,
): Promise<Result> {
  const store = createPostgresEventStore({ connectionString, log: keepLog() });
  try {
    return await work(store);
  } finally {
    await store.close();
  }
}

export const textOf = (place: Place): Promise<string> => onLog(place, exportText);

export async function query(place: Place, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: place.connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** The same command, killed with SIGKILL at a named step. */
export async function killedAt(place: Place, point: string, args: readonly string[]): Promise<void> {
  const killed = await tryAdmin({ env: { ...place.env, STRATA_FAULT_POINT: point } }, args);
  assert.equal(killed.code, null, `${point}: ${killed.stdout}${killed.stderr}`);
}

export async function filledPlace(context: TestContext, events: number): Promise<Place> {
  const place = await newPlace(context);
  await onLog(place, (store) => fillOddLog(store, events));
  return place;
}

export const refusedWith = (finished: Finished, words: RegExp): void => {
  assert.equal(finished.code, 1, finished.stdout);
  assert.match(finished.stderr, words);
};
