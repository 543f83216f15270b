/**
 * Runs pg_dump and pg_restore on a PostgreSQL of the operator.
 *
 * Invariants: they are of the major version of the server. The password is in their environment and not in their
 * arguments, which every user of the machine can read. A restore is one transaction: it leaves the whole database or
 * an empty one.
 */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { Refused } from '../answer.ts';

type Program = 'pg_dump' | 'pg_restore';

/** Where packages of several versions put their programs, beside those of PATH. */
const foldersOf = (major: number): readonly string[] => [
  `/usr/lib/postgresql/${major}/bin`,
  `/usr/pgsql-${major}/bin`,
  `/opt/homebrew/opt/postgresql@${major}/bin`,
];

/** What a dump has no use for: unlogged tables hold what ends with a crash, such as the database's life. */
const DUMP = ['--format=custom', '--no-unlogged-table-data'];
/** The next command or start gives the role that serves its rights again. */
const RESTORE = ['--exit-on-error', '--single-transaction', '--no-owner', '--no-acl'];

export async function dumpDatabase(connectionString: string, file: string): Promise<void> {
  const program = await findProgram('pg_dump', await majorVersionOf(connectionString));
  await run(program, connectionString, [...DUMP, `--file=${file}`]);
}

/** Throws `Refused` unless `restoreDatabase` can begin: the program is there, and the database is empty. */
export async function prepareRestore(
  connectionString: string,
  major: number,
): Promise<{ restore(file: string): Promise<void> }> {
  const own = await majorVersionOf(connectionString);
  if (own < major) throw new Refused(`The backup is of PostgreSQL ${major}, and the database is in PostgreSQL ${own}`);
  const program = await findProgram('pg_restore', own);
  const { database, tables } = await contentOf(connectionString);
  if (tables > 0) {
    const advice = `ALTER DATABASE ${database} RENAME TO ${database}_before, and create it again (docs/operating.md, The role that serves)`;
    throw new Refused(`The database ${database} is not empty, and a restore overwrites nothing: ${advice}`);
  }
  return { restore: (file) => run(program, connectionString, [...RESTORE, file]) };
}

export async function majorVersionOf(connectionString: string): Promise<number> {
  const { server_version_num: version } = await one<{ server_version_num: string }>(
    connectionString,
    'SHOW server_version_num',
  );
  return Math.floor(Number(version) / 10_000);
}

/** Counts tables, views, sequences and indexes of every schema but PostgreSQL's own. */
function contentOf(connectionString: string): Promise<{ readonly database: string; readonly tables: number }> {
  const text = `
    SELECT quote_ident(current_database()) AS database, count(c.oid)::int AS tables
    FROM pg_namespace n LEFT JOIN pg_class c ON c.relnamespace = n.oid
    WHERE n.nspname <> 'information_schema' AND n.nspname NOT LIKE 'pg\\_%'`;
  return one(connectionString, text);
}

async function one<Row extends pg.QueryResultRow>(connectionString: string, text: string): Promise<Row> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const [row] = (await client.query<Row>(text)).rows;
    if (row === undefined) throw new TypeError('PostgreSQL answered no row');
    return row;
  } finally {
    await client.end();
  }
}

async function findProgram(program: Program, major: number): Promise<string> {
  const folders = [
    ...(process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== ''),
    ...foldersOf(major),
  ];
  for (const file of folders.map((folder) => join(folder, program))) {
    const said = await promisify(execFile)(file, ['--version']).catch(() => null);
    if (said !== null && Number(/\) (\d+)/.exec(said.stdout)?.[1]) === major) return file;
  }
  throw new Refused(`${program} ${major} is not installed: it must be of the major version of the PostgreSQL`);
}

async function run(program: string, connectionString: string, args: readonly string[]): Promise<void> {
  const url = new URL(connectionString);
  const password = decodeURIComponent(url.password);
  url.password = '';
  const env = { ...process.env, ...(password === '' ? {} : { PGPASSWORD: password }) };
  const child = spawn(program, [`--dbname=${url.href}`, '--no-password', ...args], {
    env,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  await once(child, 'exit');
  if (child.exitCode !== 0) throw new Refused(`${program} failed`);
}
