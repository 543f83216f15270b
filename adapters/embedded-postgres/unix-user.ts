/**
 * The user PostgreSQL runs as. It refuses root, so under root another one is picked.
 *
 * Must stay true: a cluster keeps the user that owns it.
 */
import { spawn } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { EmbeddedPostgresError, systemCode } from './error.ts';

export interface UnixUser {
  readonly uid: number;
  readonly gid: number;
  readonly name: string;
}

/** The usual id of nobody, for systems whose list of users has none. */
const FALLBACK_USER: UnixUser = { uid: 65_534, gid: 65_534, name: 'uid 65534' };

/**
 * Null when PostgreSQL runs as the server's own user; under root the owner of the cluster, if it exists, else
 * `postgres`, `nobody` or any other. Throws `cluster-unusable` when the cluster is another user's.
 */
export async function postgresUser(cluster: string): Promise<UnixUser | null> {
  const me = process.getuid?.();
  const owner = await stat(cluster).catch(absentAsNull);
  if (me !== 0) {
    if (owner !== null && me !== undefined && owner.uid !== me) {
      throw unusable(`${cluster} belongs to uid ${owner.uid}, and the server runs as uid ${me}. Run it as that user.`);
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

/**
 * Throws `folder-barred`, naming the folder, when the user cannot reach the path. The answer is the machine's own
 * (access(2) as that user, so that ACLs count); modes only serve to name the folder.
 */
export async function checkReachable(user: UnixUser, target: string): Promise<void> {
  const { uid, gid } = user;
  const shell = spawn('/bin/sh', ['-c', 'test -x "$1"', 'sh', target], { uid, gid, stdio: 'ignore', cwd: '/' });
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    shell.once('error', reject);
    shell.once('exit', resolve);
  });
  if (exitCode === 0) return;
  let barring = target;
  for (let folder = path.dirname(target); ; folder = path.dirname(folder)) {
    const { uid: owner, gid: group, mode } = await stat(folder);
    const enter = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001;
    if ((mode & enter) === 0) barring = folder;
    if (folder === path.dirname(folder)) break;
  }
  throw new EmbeddedPostgresError(
    'folder-barred',
    `PostgreSQL refuses to run as root, so it runs as ${user.name}, which cannot enter ${barring} and so not reach ` +
      `${target}. Allow it (chmod o+x ${barring}), move the installation or STRATA_DATA_DIR elsewhere, ` +
      'or run the server as an ordinary user.',
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

function absentAsNull(error: unknown): null {
  if (systemCode(error) === 'ENOENT') return null;
  throw error;
}
