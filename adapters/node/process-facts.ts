/**
 * What the operating system reports about a process id.
 *
 * Invariants: a process is identified by its id and the moment it started, since ids are reused; a zombie is not
 * alive, though kill(pid, 0) succeeds on it.
 */
import { execFile } from 'node:child_process';
import { readFile, readlink } from 'node:fs/promises';
import os from 'node:os';
import { promisify } from 'node:util';

export interface ProcessFacts {
  readonly zombie: boolean;
  /** Opaque; differs between two processes that had the same id, also across restarts of the machine. */
  readonly started: string;
  readonly commandLine: string;
}

/** The facts of a process, or null when there is none of this id. */
export async function processFacts(pid: number): Promise<ProcessFacts | null> {
  return process.platform === 'linux' ? factsFromProc(pid) : factsFromPs(pid);
}

/**
 * Identifies the space in which process ids are unique: this boot of this machine and, on Linux, this process's pid
 * namespace. An id from another space says nothing about the processes here.
 */
export async function processIdSpace(): Promise<string> {
  if (process.platform !== 'linux') return os.hostname();
  const [boot, space] = await Promise.all([bootId(), readlink('/proc/self/ns/pid')]);
  return `${boot}/${space}`;
}

async function bootId(): Promise<string> {
  return (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
}

/** proc(5): the fields of `stat` after the parenthesised name, which may itself hold parentheses. */
async function factsFromProc(pid: number): Promise<ProcessFacts | null> {
  try {
    const [stat, commandLine, boot] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
      bootId(),
    ]);
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [state, startTicks] = [fields[0] ?? '', fields[19] ?? ''];
    const zombie = state === 'Z' || state === 'X';
    return { zombie, started: `${boot}/${startTicks}`, commandLine: commandLine.replaceAll('\0', ' ').trim() };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
}

async function factsFromPs(pid: number): Promise<ProcessFacts | null> {
  const fields = ['-o', 'stat=', '-o', 'lstart=', '-o', 'command=', '-p', String(pid)];
  const { stdout } = await promisify(execFile)('ps', fields, { env: { ...process.env, LC_ALL: 'C' } }).catch(
    (error: unknown) => {
      // ps exits with 1 when no process has the id.
      if (error instanceof Error && 'code' in error && error.code === 1) return { stdout: '' };
      throw error;
    },
  );
  const match = /^\s*(\S+)\s+(\w+\s+\w+\s+\d+\s+[\d:]+\s+\d+)\s+(.*)$/m.exec(stdout);
  if (match === null) return null;
  const [, state = '', started = '', commandLine = ''] = match;
  return { zombie: state.startsWith('Z'), started, commandLine };
}
