/**
 * A place for the database of a server under root whose folders PostgreSQL's user cannot enter, as of a checkout below
 * /root: a folder that both can enter holds the cluster, its socket, and a copy of PostgreSQL's programs.
 *
 * Invariants: the data directory names the place as soon as a server could store something there. A cluster that is
 * gone from its place is an error, never a new database. Only root can write to the folder of the programs.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { chmod, copyFile, mkdir, readdir, readFile, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import path from 'node:path';
import type { Log } from '../../core/ports/log.ts';
import type { Binaries } from './binaries.ts';
import { type ClusterPaths, exists, pathsIn, replaceDurably } from './cluster.ts';
import { absentAsNull, EmbeddedPostgresError, systemCode } from './error.ts';
import { isReachable, type UnixUser } from './unix-user.ts';

/** Where Linux keeps what services store (hier(7)). */
export const SHARED_FOLDER = '/var/lib/strata';

/** The file of the data directory that names the place. */
const POINTER_FILE = 'cluster-folder';
const NAME_BYTES = 6;

/**
 * Returns the paths as the data directory names them. Throws `cluster-unusable` if the cluster is gone from its place.
 */
export async function namedPlace(paths: ClusterPaths): Promise<ClusterPaths> {
  const pointer = path.join(paths.home, POINTER_FILE);
  const folder = await readFile(pointer, 'utf8').then((text) => text.trim(), absentAsNull);
  if (folder === null) return paths;
  const named = pathsIn(paths.home, folder);
  if (await exists(named.cluster)) return named;
  throw new EmbeddedPostgresError(
    'cluster-unusable',
    `${named.cluster} is gone, where ${pointer} says the database is. Restore it, or name its new folder there.`,
  );
}

export interface Wanted {
  readonly paths: ClusterPaths;
  readonly binaries: Binaries;
  readonly user: UnixUser;
  readonly sharedFolder: string;
  readonly log: Log;
}

/** Returns paths and programs that the user can reach, if there is a folder for them, else the wanted ones. */
export async function reachablePlace(wanted: Wanted): Promise<Pick<Wanted, 'paths' | 'binaries'>> {
  const placed = await choosePlace(wanted);
  const { paths, binaries } = placed;
  const places = [
    ...(path.dirname(paths.cluster) === paths.home ? [] : [`its database is in ${paths.cluster}`]),
    ...(binaries.postgres === wanted.binaries.postgres
      ? []
      : [`its programs are in ${path.dirname(binaries.postgres)}`]),
  ];
  if (places.length > 0) {
    const who = `${wanted.user.name}, as whom PostgreSQL runs, cannot enter the folders of this installation`;
    wanted.log.info({ database: paths.cluster }, `${who}: ${places.join(', ')}`);
  }
  return placed;
}

async function choosePlace({
  paths,
  binaries,
  user,
  sharedFolder,
}: Wanted): Promise<Pick<Wanted, 'paths' | 'binaries'>> {
  const isReached = await isReachable(user, path.dirname(paths.cluster));
  const areProgramsReached = await isReachable(user, binaries.postgres);
  // A cluster that exists stays where it is.
  const stays = isReached || (await exists(paths.cluster));
  if ((stays && areProgramsReached) || !(await makeSharedFolder(user, sharedFolder))) return { paths, binaries };
  const programs = areProgramsReached ? binaries : await copyOf(binaries, sharedFolder);
  if (stays) return { paths, binaries: programs };
  const folder = path.join(sharedFolder, randomBytes(NAME_BYTES).toString('hex'));
  await makeOpen(folder);
  return { paths: pathsIn(paths.home, folder), binaries: programs };
}

/** Call it when the cluster is complete, before anything is stored there. */
export async function namePlace({ home, cluster }: ClusterPaths): Promise<void> {
  const folder = path.dirname(cluster);
  if (folder !== home) await replaceDurably(path.join(home, POINTER_FILE), `${folder}\n`);
}

/**
 * Returns false if the folder cannot be made, or not so that the user can enter it and nobody but root can write to it.
 */
async function makeSharedFolder(user: UnixUser, folder: string): Promise<boolean> {
  try {
    if (!(await exists(folder))) await makeOpen(folder);
    const { uid, mode } = await stat(folder);
    return uid === 0 && (mode & 0o022) === 0 && (await isReachable(user, folder));
  } catch (error) {
    if (systemCode(error) !== null) return false;
    throw error;
  }
}

/** Others may enter it, whatever the umask is. */
async function makeOpen(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o711);
}

/** Copies the programs with their libraries, once for each version. */
async function copyOf(binaries: Binaries, sharedFolder: string): Promise<Binaries> {
  const target = path.join(sharedFolder, `programs-${binaries.version}`);
  const bin = path.join(target, 'bin');
  if (!(await exists(target))) {
    const draft = path.join(sharedFolder, `new-${randomUUID()}`);
    try {
      await copyReadable(path.dirname(path.dirname(binaries.postgres)), draft);
      await rename(draft, target);
    } catch (error) {
      await rm(draft, { recursive: true, force: true });
      // Another server has copied them first.
      if (systemCode(error) !== 'ENOTEMPTY' && systemCode(error) !== 'EEXIST') throw error;
    }
  }
  return { ...binaries, postgres: path.join(bin, 'postgres'), initdb: path.join(bin, 'initdb') };
}

async function copyReadable(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, copy] = [path.join(from, entry.name), path.join(to, entry.name)];
    if (entry.isDirectory()) await copyReadable(source, copy);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), copy);
    else {
      await copyFile(source, copy);
      await chmod(copy, ((await stat(source)).mode & 0o100) === 0 ? 0o644 : 0o755);
    }
  }
}
