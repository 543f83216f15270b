/**
 * The user that PostgreSQL runs as. PostgreSQL refuses to run as root, so a server under root runs it as another user.
 *
 * Invariants: PostgreSQL always runs as the user that owns its cluster.
 */
import { spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { absentAsNull, EmbeddedPostgresError } from './error.ts';

export interface UnixUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

/** The usual id of `nobody`, for systems whose /etc/passwd has no such user. */
const FALLBACK_USER: UnixUser = { uid: 65_534, gid: 65_534, name: 'uid 65534' };

/**
 * Returns null when PostgreSQL runs as the server's own user. Under root returns the owner of the cluster if there is a
 * cluster, else `postgres`, `nobody` or uid 65534. Throws `cluster-unusable` when the cluster belongs to root, or to a
 * user other than the one that the server runs as.
 */
export async function postgresUser(cluster: string): Promise<UnixUser | null> {
  const serverUid = process.getuid?.();
  const owner = await stat(cluster).catch(absentAsNull);
  if (serverUid !== 0) {
    if (owner !== null && serverUid !== undefined && owner.uid !== serverUid) {
      throw unusable(
        `${cluster} belongs to uid ${owner.uid}, and the server runs as uid ${serverUid}. Run it as that user.`,
      );
    }
    return null;
  }
  const users = parseUsers(await readFile('/etc/passwd', 'utf8').catch(absentAsNull));
  if (owner !== null) {
    if (owner.uid === 0) throw unusable(`${cluster} belongs to root, and PostgreSQL refuses to run as root.`);
    const known = users.find((user) => user.uid === owner.uid);
    return { uid: owner.uid, gid: owner.gid, name: known?.name ?? `uid ${owner.uid}` };
  }
  const named = (name: string) => users.find((user) => user.name === name && user.uid > 0);
  return named('postgres') ?? named('nobody') ?? FALLBACK_USER;
}

/** Whether the user can reach the path. The operating system decides, by access(2) as that user, so that ACLs count. */
export async function isReachable({ uid, gid }: UnixUser, target: string): Promise<boolean> {
  const shell = spawn('/bin/sh', ['-c', 'test -x "$1"', 'sh', target], { uid, gid, stdio: 'ignore', cwd: '/' });
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    shell.once('error', reject);
    shell.once('exit', resolve);
  });
  return exitCode === 0;
}

/**
 * Throws `folder-barred`, naming the folder, when the user cannot reach the path. The folders' modes only serve to find
 * the name for the message.
 */
export async function checkReachable(user: UnixUser, target: string): Promise<void> {
  const { uid, gid } = user;
  if (await isReachable(user, target)) return;
  let blockingFolder = target;
  for (let folder = path.dirname(target); ; folder = path.dirname(folder)) {
    const { uid: owner, gid: group, mode } = await stat(folder);
    const enterBit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001;
    if ((mode & enterBit) === 0) blockingFolder = folder;
    if (folder === path.dirname(folder)) break;
  }
  throw new EmbeddedPostgresError(
    'folder-barred',
    `PostgreSQL refuses to run as root, so it runs as ${user.name}, which cannot enter ${blockingFolder} ` +
      `and so cannot reach ${target}. Allow it (chmod o+x ${blockingFolder}), move the installation or ` +
      'STRATA_DATA_DIR elsewhere, or run the server as an ordinary user.',
  );
}

function parseUsers(passwd: string | null): readonly UnixUser[] {
  return (passwd ?? '').split('\n').flatMap((line) => {
    const [name, , uid, gid] = line.split(':');
    return name === undefined || uid === undefined || gid === undefined
      ? []
      : [{ name, uid: Number(uid), gid: Number(gid) }];
  });
}

function unusable(message: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError('cluster-unusable', message);
}
