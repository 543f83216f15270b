/**
 * The cluster on disk: everything the embedded PostgreSQL keeps under `<data directory>/postgres`.
 *
 * Must stay true: `cluster` is whole whenever it exists: it is made in `new-<random>` and renamed into place, so a
 * server that dies in between leaves nothing that the next one would take for a cluster.
 */
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, chown, mkdir, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Binaries } from './binaries.ts';
import { EmbeddedPostgresError, systemCode } from './error.ts';
import { checkReachable, type UnixUser } from './unix-user.ts';

export const SUPERUSER = 'strata';
const PASSWORD_BYTES = 24;
const WORKSHOP_PREFIX = 'new-';
/** initdb takes a second; a machine that needs a minute is stuck. */
const INITDB_SPAN_MS = 60_000;

export interface ClusterPaths {
  /** Ours: holds the rest. */
  readonly home: string;
  /** PostgreSQL's data directory. */
  readonly cluster: string;
  readonly socketDirectory: string;
  readonly passwordFile: string;
  readonly logFile: string;
}

/** Makes the home directory and gives its paths in their one spelling, so that they compare as text. */
export async function prepareHome(dataDir: string): Promise<ClusterPaths> {
  // Under root PostgreSQL's user passes through; it can read none of what lies here but its own directories.
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  const made = await mkdir(path.join(dataDir, 'postgres'), { recursive: true, mode });
  const home = await realpath(path.join(dataDir, 'postgres'));
  if (made !== undefined) {
    // The umask may have taken away what mkdir was asked for.
    const first = await realpath(made);
    for (let folder = home; folder.startsWith(first); folder = path.dirname(folder)) await chmod(folder, mode);
  }
  return {
    home,
    cluster: path.join(home, 'cluster'),
    socketDirectory: path.join(home, 'socket'),
    passwordFile: path.join(home, 'password'),
    logFile: path.join(home, 'postgres.log'),
  };
}

/** Makes a directory only PostgreSQL's user enters. */
export async function makePrivateDirectory(directory: string, user: UnixUser | null): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  if (user !== null) await chown(directory, user.uid, user.gid);
}

/** The superuser's password, made once; 0600. Throws `cluster-unusable` when only the cluster is left. */
export async function readOrMakePassword(paths: ClusterPaths): Promise<string> {
  try {
    return (await readFile(paths.passwordFile, 'utf8')).trim();
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    if (await exists(paths.cluster)) {
      throw new EmbeddedPostgresError(
        'cluster-unusable',
        `${paths.passwordFile} is gone, and without it nobody can sign in to ${paths.cluster}. Restore it.`,
        { cause: error },
      );
    }
  }
  const password = randomBytes(PASSWORD_BYTES).toString('hex');
  const draft = `${paths.passwordFile}.${randomUUID()}`;
  await writeDurably(draft, password, null);
  await rename(draft, paths.passwordFile);
  await syncDirectory(paths.home);
  return password;
}

/** Makes the cluster where there is none. */
export async function ensureCluster(
  paths: ClusterPaths,
  binaries: Binaries,
  user: UnixUser | null,
  password: string,
): Promise<void> {
  if (user !== null) {
    await checkReachable(user, binaries.postgres);
    await checkReachable(user, paths.home);
  }
  if (await exists(paths.cluster)) return checkVersion(paths, binaries);
  await sweepWorkshops(paths.home);
  const workshop = path.join(paths.home, `${WORKSHOP_PREFIX}${randomUUID()}`);
  await makePrivateDirectory(workshop, user);
  const passwordFile = path.join(workshop, 'password');
  await writeDurably(passwordFile, password, user);
  const flags = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--auth=scram-sha-256', '--no-instructions'];
  const made = path.join(workshop, 'cluster');
  try {
    await promisify(execFile)(
      binaries.initdb,
      [...flags, `--username=${SUPERUSER}`, `--pwfile=${passwordFile}`, '-D', made],
      { ...(user === null ? {} : { uid: user.uid, gid: user.gid }), ...processSurroundings(), timeout: INITDB_SPAN_MS },
    );
  } catch (error) {
    const detail = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new EmbeddedPostgresError('start-failed', `initdb failed: ${detail}`, { cause: error });
  }
  await rename(made, paths.cluster);
  await syncDirectory(paths.home);
  await rm(workshop, { recursive: true, force: true });
}

/** Removes half-made clusters. An initdb whose server was killed may still be at work in one, so it tries for long. */
async function sweepWorkshops(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    if (!name.startsWith(WORKSHOP_PREFIX)) continue;
    await rm(path.join(home, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** What PostgreSQL's programs see of ours: nothing but this, so no secret of the server's environment. */
export function processSurroundings(): { readonly cwd: string; readonly env: Record<string, string> } {
  return { cwd: '/', env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' } };
}

async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function checkVersion(paths: ClusterPaths, binaries: Binaries): Promise<void> {
  const made = (await readFile(path.join(paths.cluster, 'PG_VERSION'), 'utf8')).trim();
  const { stdout } = await promisify(execFile)(binaries.postgres, ['--version'], processSurroundings());
  const ours = /(\d+)/.exec(stdout)?.[1] ?? '';
  if (made === ours) return;
  throw new EmbeddedPostgresError(
    'version-mismatch',
    `${paths.cluster} was made by PostgreSQL ${made}, and this installation brings ${ours}. Export the event log ` +
      'with the version of Strata that made it, move the directory away, and import it here.',
  );
}

async function writeDurably(file: string, text: string, owner: UnixUser | null): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    if (owner !== null) await handle.chown(owner.uid, owner.gid);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** A rename is durable once its directory is. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
