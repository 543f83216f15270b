/**
 * Ends processes that take more memory than they were admitted with. A limit of the system (setrlimit(2)) would cost
 * each process another exec(2), half a millisecond of a small push.
 *
 * Invariants: a process is looked at soon after its start and then every few milliseconds, so that it is beyond its
 * bound for that long at most. Where the system does not show its memory, its hard limit alone holds.
 */
import { readFileSync } from 'node:fs';

/** Ordinary processes of a push end before the first look. In this time a process takes some 20 MiB at most. */
export const LOOK_INTERVAL_MS = 20;

/** Calls `onOutgrown` once if the process takes more than the bound; returns what to call at its end. */
export type MemoryWatch = (pid: number, bytesMax: number | null, onOutgrown: () => void) => () => void;

interface Watched {
  readonly bytesMax: number;
  readonly onOutgrown: () => void;
}

export function createMemoryWatch(): MemoryWatch {
  const watched = new Map<number, Watched>();
  let timer: NodeJS.Timeout | null = null;
  const look = () => {
    for (const [pid, { bytesMax, onOutgrown }] of watched) {
      if (ownMemoryBytes(pid) <= bytesMax) continue;
      unwatch(pid);
      onOutgrown();
    }
  };
  const unwatch = (pid: number) => {
    watched.delete(pid);
    if (watched.size > 0 || timer === null) return;
    clearInterval(timer);
    timer = null;
  };
  return (pid, bytesMax, onOutgrown) => {
    if (bytesMax === null) return () => undefined;
    watched.set(pid, { bytesMax, onOutgrown });
    timer ??= setInterval(look, LOOK_INTERVAL_MS);
    return () => unwatch(pid);
  };
}

/** The anonymous memory of a process in RAM (proc_pid_status(5)); 0 if it has ended, or the system does not tell. */
function ownMemoryBytes(pid: number): number {
  try {
    const status = readFileSync(`/proc/${pid}/status`, 'latin1');
    return Number(/^RssAnon:\s*(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1_024;
  } catch {
    return 0;
  }
}
