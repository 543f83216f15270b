/**
 * Copies the cluster of an embedded PostgreSQL while it runs, and makes such a copy the cluster of a data directory.
 *
 * Invariants: the copy holds the whole write-ahead log from the start of the backup to its end, since a replication
 * slot keeps those segments until they are copied. A cluster that is only partly there has no PG_VERSION, so no server
 * starts on it. A restore sets aside what was there before, and removes nothing.
 */
import { constants } from 'node:fs';
import { chown, copyFile, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Log } from '../../core/ports/log.ts';
import { exists, makePrivateDirectory, prepareHome, syncPath, writeDurably } from './cluster.ts';
import { EmbeddedPostgresError, systemCode } from './error.ts';
import type { ProcessFacts } from './orphan.ts';
import { namePlace } from './shared-place.ts';
import { choosePlace, startEmbeddedPostgres } from './start.ts';
import { checkReachable, type UnixUser } from './unix-user.ts';

/** What lies in a folder with a saved cluster. */
const [CLUSTER, PASSWORD] = ['cluster', 'password'];
const VERSION_FILE = 'PG_VERSION';
const CONTROL_FILE = 'global/pg_control';
const LOG_FOLDER = 'pg_wal';
/** A start makes their content again, or must not find it (PostgreSQL's documentation, Making a Base Backup). */
const EMPTIED = ['pg_dynshmem', 'pg_notify', 'pg_replslot', 'pg_serial', 'pg_snapshots', 'pg_stat_tmp', 'pg_subtrans'];
const LEFT_OUT =
  /^(postmaster\.(pid|opts)|pgsql_tmp.*|pg_internal\.init.*|backup_label(\.old)?|tablespace_map(\.old)?)$/;
const SEGMENT = /^[0-9A-F]{24}$/;
/** Segments of 16 MB, as initdb makes them, in one file number of the log. */
const SEGMENTS_A_FILE_NUMBER = 256;
/** How often the control file is read until two reads agree. Internal: PostgreSQL writes it at checkpoints only. */
const CONTROL_FILE_READS_MAX = 20;

export interface SavedClusterOptions {
  /** Connects as the superuser of the running embedded PostgreSQL. */
  readonly ownerConnectionString: string;
  /** The data directory that the PostgreSQL belongs to. */
  readonly dataDir: string;
  /** A new folder for the copy. */
  readonly folder: string;
}

/** Copies the cluster of a running embedded PostgreSQL; servers may work on it. */
export async function saveCluster({ ownerConnectionString, dataDir, folder }: SavedClusterOptions): Promise<void> {
  const client = new pg.Client({ connectionString: ownerConnectionString });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const { data_directory: cluster } = await one<{ data_directory: string }>(client, 'SHOW data_directory');
    await refuseTablespaces(cluster);
    // A temporary slot ends with the connection, whatever happens.
    await client.query(`SELECT pg_create_physical_replication_slot('strata_backup_${process.pid}', true, true)`);
    const start = await one<{ segment: string }>(
      client,
      `SELECT pg_walfile_name(pg_backup_start('strata backup', true)) AS segment`,
    );
    const copy = path.join(folder, CLUSTER);
    await copyRunning(cluster, copy);
    const stop = await one<{ segment: string; labelfile: string }>(
      client,
      'SELECT pg_walfile_name(lsn) AS segment, labelfile FROM pg_backup_stop(false)',
    );
    await copySegments(path.join(cluster, LOG_FOLDER), path.join(copy, LOG_FOLDER), start.segment, stop.segment);
    await writeFile(path.join(copy, 'backup_label'), stop.labelfile, { mode: 0o600, flush: true });
    await copyDurably(path.join(dataDir, 'postgres', 'password'), path.join(folder, PASSWORD));
  } finally {
    await client.end();
  }
}

async function one<Row extends pg.QueryResultRow>(client: pg.Client, text: string): Promise<Row> {
  const { rows } = await client.query<Row>(text);
  const [row] = rows;
  if (row === undefined) throw new TypeError(`No row for ${text}`);
  return row;
}

async function refuseTablespaces(cluster: string): Promise<void> {
  if ((await readdir(path.join(cluster, 'pg_tblspc'))).length === 0) return;
  const why = `${cluster} has tablespaces in other folders, which this backup would not hold`;
  throw new EmbeddedPostgresError('cluster-unusable', why);
}

/** Copies what PostgreSQL writes at the same time: recovery mends what is torn. The segments of its log come later. */
async function copyRunning(cluster: string, copy: string): Promise<void> {
  await copyFolder(cluster, copy, (name) =>
    [LOG_FOLDER, ...EMPTIED].includes(name)
      ? 'folder'
      : name === CONTROL_FILE || LEFT_OUT.test(path.basename(name))
        ? 'none'
        : 'all',
  );
  await writeFile(path.join(copy, CONTROL_FILE), await readControlFile(path.join(cluster, CONTROL_FILE)), {
    mode: 0o600,
    flush: true,
  });
}

/** PostgreSQL replaces its 8 KB in one write, which a read may overtake. */
async function readControlFile(file: string): Promise<Buffer> {
  let last = await readFile(file);
  for (let reads = 1; reads < CONTROL_FILE_READS_MAX; reads += 1) {
    const next = await readFile(file);
    if (next.equals(last)) return next;
    last = next;
  }
  throw new EmbeddedPostgresError('cluster-unusable', `${file} changes with every read`);
}

async function copySegments(from: string, to: string, first: string, last: string): Promise<void> {
  const names = (await readdir(from)).filter((name) => SEGMENT.test(name) && name >= first && name <= last);
  if (names.length !== numberOf(last) - numberOf(first) + 1) {
    const why = `${from} lacks segments between ${first} and ${last}: the copy would not be whole`;
    throw new EmbeddedPostgresError('cluster-unusable', why);
  }
  const histories = (await readdir(from)).filter((name) => name.endsWith('.history'));
  for (const name of [...names, ...histories]) await copyDurably(path.join(from, name), path.join(to, name));
}

/** Consecutive segments of a timeline have consecutive numbers. */
function numberOf(segment: string): number {
  return Number.parseInt(segment.slice(8, 16), 16) * SEGMENTS_A_FILE_NUMBER + Number.parseInt(segment.slice(16), 16);
}

export interface RestoreClusterOptions {
  /** The caller holds its lock. */
  readonly dataDir: string;
  /** What `saveCluster` made. */
  readonly folder: string;
  readonly processFacts: ProcessFacts;
  readonly log: Log;
  /** Null: the state of the copy. */
  readonly archive: ArchivedLog | null;
  readonly sharedFolder?: string;
}

/** An archive of the write-ahead log, and up to when it is replayed; null: to its end. */
export interface ArchivedLog {
  readonly folder: string;
  readonly until: Timestamp | null;
}

/**
 * Makes the copy the cluster of a data directory. Returns the folder to which the files of an earlier database were
 * renamed; null if there were none.
 */
export async function restoreCluster(options: RestoreClusterOptions): Promise<string | null> {
  const { dataDir, folder, log, processFacts, archive } = options;
  const saved = path.join(folder, CLUSTER);
  await readFile(path.join(saved, VERSION_FILE));
  const aside = await setAside(path.join(dataDir, 'postgres'));
  const home = await prepareHome(dataDir);
  await copyDurably(path.join(folder, PASSWORD), home.passwordFile);
  const place = await choosePlace(options);
  const { paths, user, binaries } = place;
  if (user !== null) {
    await checkReachable(user, binaries.postgres);
    await checkReachable(user, path.dirname(paths.cluster));
  }
  await makePrivateDirectory(paths.cluster, user);
  // It was named before the cluster is whole, so that a start after a crash finds this one and refuses it.
  await namePlace(paths);
  await copyFolder(saved, paths.cluster, (name) => (name === VERSION_FILE ? 'none' : 'all'), user);
  if (archive !== null) await writeDurably(path.join(paths.cluster, 'recovery.signal'), '', user);
  await copyDurably(path.join(saved, VERSION_FILE), path.join(paths.cluster, VERSION_FILE), user);
  if (archive === null) return aside;
  // Beside recovery.signal PostgreSQL refuses to start without these settings, as after a replay that was cut short.
  const settings = recoverySettings(archive);
  const recovered = await startEmbeddedPostgres({ dataDir, processFacts, log, settings, ...sharedOf(options) });
  await recovered.stop();
  return aside;
}

function sharedOf({ sharedFolder }: RestoreClusterOptions): { sharedFolder?: string } {
  return sharedFolder === undefined ? {} : { sharedFolder };
}

/** Nobody connects before the replay has ended, and the database then takes writes. */
function recoverySettings({ folder, until }: ArchivedLog): Readonly<Record<string, string>> {
  return {
    restore_command: `cp "${folder}/%f" "%p"`,
    recovery_target_action: 'promote',
    hot_standby: 'off',
    // PostgreSQL takes neither the T nor the Z here.
    ...(until === null ? {} : { recovery_target_time: until.replace('T', ' ').replace('Z', '+00') }),
  };
}

async function setAside(home: string): Promise<string | null> {
  if (!(await exists(home))) return null;
  const aside = `${home}.before-${new Date().toISOString().replaceAll(/[-:]|\.\d+/g, '')}`;
  await rename(home, aside);
  return aside;
}

type Part = 'all' | 'folder' | 'none';

/**
 * Copies a folder that may change at the same time: files that leave are left out. `partOf` says for each path below it
 * whether all of it is copied, only the folder, or nothing. The copies belong to the user, if there is one.
 */
async function copyFolder(
  from: string,
  to: string,
  partOf: (name: string) => Part,
  user: UnixUser | null = null,
  below = '',
): Promise<void> {
  await makePrivateDirectory(path.join(to, below), user);
  for (const entry of await readdir(path.join(from, below), { withFileTypes: true })) {
    const name = path.join(below, entry.name);
    const part = partOf(name);
    if (part === 'none') continue;
    if (part === 'folder') await makePrivateDirectory(path.join(to, name), user);
    else if (entry.isDirectory()) await copyFolder(from, to, partOf, user, name);
    else if (entry.isFile()) await copyDurably(path.join(from, name), path.join(to, name), user).catch(ifGone);
    else throw new EmbeddedPostgresError('cluster-unusable', `${path.join(from, name)} is neither a file nor a folder`);
  }
  await syncPath(path.join(to, below));
}

function ifGone(error: unknown): void {
  if (systemCode(error) !== 'ENOENT') throw error;
}

async function copyDurably(from: string, to: string, user: UnixUser | null = null): Promise<void> {
  await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  if (user !== null) await chown(to, user.uid, user.gid);
  await syncPath(to);
}
