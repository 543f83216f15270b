/**
 * Where the helper's socket is: below the runner's own directory, or among the system's temporary files if that path is
 * too long for a socket.
 *
 * Invariants: a folder is removed by its owner, or as stale when the process in its name is dead; a folder whose
 * owner is alive, or that another user made, stays.
 */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * sun_path holds 104 bytes on macOS, 108 on Linux, its closing NUL among them: unix(4), unix(7). Internal: only the
 * operator's folder reaches it.
 */
const SOCKET_PATH_BYTES_MAX = 103;

const SHARED_PREFIX = 'strata-git-';
/** `<process id>-<six letters of mkdtemp(3)>`. */
const OWNED_NAME = /^(\d+)-[A-Za-z0-9]{6}$/;

/** Makes a folder that only this user can enter. */
export function makeSocketFolder(directory: string): string {
  const own = join(directory, 'sockets');
  const longest = join(own, `${process.pid}-XXXXXX`, 's');
  if (Buffer.byteLength(longest) > SOCKET_PATH_BYTES_MAX) {
    return mkdtempSync(join(tmpdir(), `${SHARED_PREFIX}${process.pid}-`));
  }
  mkdirSync(own, { recursive: true, mode: 0o700 });
  return mkdtempSync(join(own, `${process.pid}-`));
}

export function socketPathIn(folder: string): string {
  return join(folder, 's');
}

/** Removes what killed processes left. Call it once for a directory, before its first folder is made. */
export function sweepSocketFolders(directory: string): void {
  // In a container each run may have the same process id: what has this id in its own directory is of an earlier run.
  sweep(join(directory, 'sockets'), '', (pid) => pid === process.pid || !isAlive(pid));
  sweep(tmpdir(), SHARED_PREFIX, (pid) => !isAlive(pid));
}

function sweep(parent: string, prefix: string, isStale: (pid: number) => boolean): void {
  for (const name of namesIn(parent)) {
    if (!name.startsWith(prefix)) continue;
    const pid = OWNED_NAME.exec(name.slice(prefix.length))?.[1];
    if (pid === undefined || !isStale(Number(pid))) continue;
    const folder = join(parent, name);
    if (statSync(folder, { throwIfNoEntry: false })?.uid !== process.getuid?.()) continue;
    rmSync(folder, { recursive: true, force: true });
  }
}

function namesIn(parent: string): readonly string[] {
  try {
    return readdirSync(parent);
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process is alive and belongs to another user.
    return codeOf(error) === 'EPERM';
  }
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}
