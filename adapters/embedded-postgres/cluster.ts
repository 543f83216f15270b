/**
 * The files of the embedded PostgreSQL, under `<data directory>/postgres`, or the cluster in a place that
 * shared-place.ts has chosen.
 *
 * Invariants: `cluster` is complete whenever it exists. It is created in `new-<random>` and renamed into place, so
 * a server that dies in between leaves nothing that the next one would use as a cluster.
 */
import { execFile } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import {
  chmod,
  chown,
  copyFile,
  mkdir,
  mkdtemp,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  stat,
  symlink,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import type { Binaries } from './binaries.ts';
import { EmbeddedPostgresError, systemCode } from './error.ts';
import { checkReachable, type UnixUser } from './unix-user.ts';

/** The superuser owns the service's database. */
export const SUPERUSER = 'strata';
const PASSWORD_BYTES = 24;
const DRAFT_PREFIX = 'new-';
/** initdb takes about a second; after a minute it is stuck. */
const INITDB_SPAN_MS = 60_000;
/** POSIX, Shell Command Language, section 2.2.3. */
const SPECIAL_IN_QUOTES = /["$`\\]/;

export interface ClusterPaths {
  /** Belongs to the server's user, and holds everything below. */
  readonly home: string;
  /** PostgreSQL's data directory. */
  readonly cluster: string;
  readonly socketDirectory: string;
  readonly passwordFile: string;
  readonly logFile: string;
}

/** Creates the home directory and returns its paths with symbolic links resolved, so that they compare as text. */
export async function prepareHome(dataDir: string): Promise<ClusterPaths> {
  // Under root, PostgreSQL runs as another user: it may enter this directory, but only read its own subdirectories.
  const mode = process.getuid?.() === 0 ? 0o711 : 0o700;
  const made = await mkdir(path.join(dataDir, 'postgres'), { recursive: true, mode });
  const home = await realpath(path.join(dataDir, 'postgres'));
  if (made !== undefined) {
    // The umask may have removed bits of the mode.
    const first = await realpath(made);
    for (let folder = home; folder.startsWith(first); folder = path.dirname(folder)) await chmod(folder, mode);
  }
  return pathsIn(home, home);
}

/** `folder` holds the cluster and its socket. */
export function pathsIn(home: string, folder: string): ClusterPaths {
  return {
    home,
    cluster: path.join(folder, 'cluster'),
    socketDirectory: path.join(folder, 'socket'),
    passwordFile: path.join(home, 'password'),
    logFile: path.join(home, 'postgres.log'),
  };
}

/** Creates a directory that only PostgreSQL's user can enter. */
export async function makePrivateDirectory(directory: string, user: UnixUser | null): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  if (user !== null) await chown(directory, user.uid, user.gid);
}

/**
 * Returns the superuser's password; the first call creates its file, with mode 0600. Throws `cluster-unusable` when the
 * file is gone but the cluster exists.
 */
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
  const password = newPassword();
  await replaceDurably(paths.passwordFile, password);
  return password;
}

/** Writes a file that only its owner may read. It has its old content or its new one, whatever happens. */
export async function replaceDurably(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  await writeDurably(draft, text, null);
  await rename(draft, file);
  await syncPath(path.dirname(file));
}

/** Its characters need no quoting, in SQL or in a URL. */
export function newPassword(): string {
  return randomBytes(PASSWORD_BYTES).toString('hex');
}

/** Creates the cluster if there is none, else checks its version. Throws `EmbeddedPostgresError`. */
export async function ensureCluster(
  paths: ClusterPaths,
  binaries: Binaries,
  user: UnixUser | null,
  password: string,
): Promise<void> {
  const folder = path.dirname(paths.cluster);
  if (user !== null) {
    await checkReachable(user, binaries.postgres);
    await checkReachable(user, folder);
  }
  if (await exists(paths.cluster)) return checkVersion(paths, binaries);
  await removeDrafts(folder);
  const draftDirectory = path.join(folder, `${DRAFT_PREFIX}${randomUUID()}`);
  await makePrivateDirectory(draftDirectory, user);
  const passwordFile = path.join(draftDirectory, 'password');
  await writeDurably(passwordFile, password, user);
  const flags = ['--encoding=UTF8', '--locale=C', '--data-checksums', '--auth=scram-sha-256', '--no-instructions'];
  const made = path.join(draftDirectory, 'cluster');
  const programs = await programsForShell(binaries);
  try {
    await promisify(execFile)(
      programs.initdb,
      [...flags, `--username=${SUPERUSER}`, `--pwfile=${passwordFile}`, '-D', made],
      { ...(user === null ? {} : { uid: user.uid, gid: user.gid }), ...processEnvironment(), timeout: INITDB_SPAN_MS },
    );
  } catch (error) {
    const detail = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : '';
    throw new EmbeddedPostgresError('start-failed', `initdb failed: ${detail}`, { cause: error });
  } finally {
    await programs.remove();
  }
  await rename(made, paths.cluster);
  await syncPath(folder);
  await rm(draftDirectory, { recursive: true, force: true });
}

/**
 * Returns an initdb whose path means itself in a shell: initdb starts postgres by a line for the shell, with its own
 * folder between double quotes (PostgreSQL 18, initdb.c). Where that folder has characters that mean something there,
 * it is a copy in a folder for temporary files. initdb looks for the rest beside the folder of its real path.
 */
async function programsForShell({ initdb, postgres }: Binaries): Promise<{ initdb: string; remove(): Promise<void> }> {
  if (!SPECIAL_IN_QUOTES.test(initdb)) return { initdb, remove: async () => undefined };
  const folder = await mkdtemp(path.join(tmpdir(), 'strata-initdb-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    const [bin, home] = [path.join(folder, 'bin'), path.dirname(path.dirname(initdb))];
    await mkdir(bin);
    const programs = [initdb, postgres].map((from) => ({ from, to: path.join(bin, path.basename(from)) }));
    for (const { from, to } of programs) await copyFile(from, to);
    // PostgreSQL's user may be another one, whatever the umask is.
    for (const made of [folder, bin, ...programs.map(({ to }) => to)]) await chmod(made, 0o755);
    for (const name of ['lib', 'share']) await symlink(path.join(home, name), path.join(folder, name));
    return { initdb: path.join(bin, 'initdb'), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

/** Removes incomplete clusters. The initdb of a killed server may still write to one, so each removal is retried. */
async function removeDrafts(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    if (!name.startsWith(DRAFT_PREFIX)) continue;
    await rm(path.join(folder, name), { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }
}

/** Working directory and environment of PostgreSQL's programs: they get no secret of the server's environment. */
export function processEnvironment(): { readonly cwd: string; readonly env: Record<string, string> } {
  return { cwd: '/', env: { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' } };
}

export async function exists(file: string): Promise<boolean> {
  try {
    await stat(file);
    return true;
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return false;
    throw error;
  }
}

async function checkVersion(paths: ClusterPaths, binaries: Binaries): Promise<void> {
  const clusterVersion = (await readFile(path.join(paths.cluster, 'PG_VERSION'), 'utf8')).trim();
  const { stdout } = await promisify(execFile)(binaries.postgres, ['--version'], processEnvironment());
  const installedVersion = /(\d+)/.exec(stdout)?.[1] ?? '';
  if (clusterVersion === installedVersion) return;
  throw new EmbeddedPostgresError(
    'version-mismatch',
    `${paths.cluster} was made by PostgreSQL ${clusterVersion}, and this installation has ${installedVersion}. ` +
      'Export the event log with the version of Strata that made it, move the directory away, and import it here.',
  );
}

/** Makes a new file that only its owner can read. Its folder is not flushed. */
export async function writeDurably(file: string, text: string, owner: UnixUser | null): Promise<void> {
  const handle = await open(file, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    if (owner !== null) await handle.chown(owner.uid, owner.gid);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Flushes a file or a folder to disk: a rename is durable only after its folder is flushed. */
export async function syncPath(file: string): Promise<void> {
  const handle = await open(file, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
