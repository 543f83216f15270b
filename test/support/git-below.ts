/** Lists the git processes that a server started, directly or through its helper process, from Linux's /proc. */
import { readdirSync, readFileSync } from 'node:fs';

/** Why such a test cannot run here; false where it can run. */
export const NO_PROC: string | false = process.platform === 'linux' ? false : "needs Linux's /proc";

/** Returns the subcommands of git that run for requests: `upload-pack`, `pack-objects`, `index-pack`, `archive`. */
export function gitBelow(ancestor: number | undefined): readonly string[] {
  return gitProcessesBelow(ancestor).map(({ command }) => command);
}

export function gitProcessesBelow(
  ancestor: number | undefined,
): readonly { readonly pid: number; readonly command: string }[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    const stat = /^\d+$/.test(name) ? read(`/proc/${name}/stat`) : null;
    // `pid (command) state parent`; the command may hold any character.
    const [, parent] = /^.*\) [^ZX] (\d+) /s.exec(stat ?? '') ?? [];
    if (parent !== undefined) parents.set(Number(name), Number(parent));
  }
  const isBelow = (pid: number): boolean => {
    for (let at = parents.get(pid); at !== undefined; at = parents.get(at)) if (at === ancestor) return true;
    return false;
  };
  return [...parents.keys()].filter(isBelow).flatMap((pid) => {
    const words = (read(`/proc/${pid}/cmdline`) ?? '').split('\0');
    const command = words.find((word) => ['upload-pack', 'pack-objects', 'index-pack', 'archive'].includes(word));
    return command === undefined ? [] : [{ pid, command }];
  });
}

/** Returns null for a process that has already ended. */
function read(file: string): string | null {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return null;
    throw error;
  }
}
