/**
 * How another process of ours reaches the PostgreSQL that a running server supervises.
 *
 * Must stay true: the file holds the password, so it is as private as the password's own file; it is written
 * anew at each start and means nothing while no server holds the data directory.
 */
import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

const FILE = 'connection';

/** Leaves the connection string for `joinEmbeddedPostgres`. */
export async function announce(home: string, connectionString: string): Promise<void> {
  const draft = path.join(home, `${FILE}.${randomUUID()}`);
  await writeFile(draft, connectionString, { mode: 0o600 });
  await rename(draft, path.join(home, FILE));
}

/** The connection string of the server that has the data directory: call it when the directory's lock is taken. */
export async function joinEmbeddedPostgres(dataDir: string): Promise<string> {
  return readFile(path.join(dataDir, 'postgres', FILE), 'utf8');
}
