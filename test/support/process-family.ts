/** Finds processes and reads what Linux's /proc shows of them (proc(5)). */
import { readdirSync, readFileSync } from 'node:fs';

/** The process and all processes below it, itself first; a zombie does not count. */
export function familyOf(pid: number): readonly number[] {
  const parents = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    // `pid (command) state parent`; the command may hold any character.
    const stat = /^\d+$/.test(name) ? textOfProcess(`/proc/${name}/stat`) : '';
    const [, parent] = /^.*\) [^ZX] (\d+) /s.exec(stat) ?? [];
    if (parent !== undefined) parents.set(Number(name), Number(parent));
  }
  const isBelow = (at: number): boolean => {
    const parent = parents.get(at);
    return parent !== undefined && (parent === pid || isBelow(parent));
  };
  return [...(parents.has(pid) ? [pid] : []), ...[...parents.keys()].filter(isBelow)];
}

/** Returns '' for a process that has ended. */
export function textOfProcess(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ESRCH')) return '';
    throw error;
  }
}
