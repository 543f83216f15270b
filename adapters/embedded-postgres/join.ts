/**
 * The file by which strata-admin connects to the embedded PostgreSQL of a running server.
 *
 * Invariants: the file holds the password, so only its owner may read it, as with the password's own file. Each
 * start writes it again; its content is valid only while a server holds the data directory.
 */
import { randomUUID } from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';

const CONNECTION_FILE = 'connection';

/** How to connect to the service's database: as the role that serves, and as its owner. */
interface Connections {
  readonly connectionString: string;
  readonly ownerConnectionString: string;
}

/** Writes the file that `joinEmbeddedPostgres` reads, with mode 0600. */
export async function writeConnectionFile(home: string, connections: Connections): Promise<void> {
  const draft = path.join(home, `${CONNECTION_FILE}.${randomUUID()}`);
  const { connectionString, ownerConnectionString } = connections;
  await writeFile(draft, `${connectionString}\n${ownerConnectionString}\n`, { mode: 0o600 });
  await rename(draft, path.join(home, CONNECTION_FILE));
}

/** Returns the running server's connections. Call it only when another process holds the directory's lock. */
export async function joinEmbeddedPostgres(
  dataDir: string,
): Promise<{ readonly connectionString: string; readonly ownerConnectionString: string | null }> {
  const text = await readFile(path.join(dataDir, 'postgres', CONNECTION_FILE), 'utf8');
  // A server of the version before has one role, and so one line: it is left as it is while that server runs.
  const [connectionString = '', ownerConnectionString = null] = text.trimEnd().split('\n');
  return { connectionString, ownerConnectionString };
}
