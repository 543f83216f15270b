/**
 * Ends processes that take more processor time than they may. The system's own limit (setrlimit(2)) is fixed when a
 * process starts, and what a pack is worth is known only as it arrives.
 *
 * Invariants: a process is beyond its bound for no longer than `LOOK_INTERVAL_MS` a processor. Where the system does
 * not show its time, its hard limit alone holds.
 */
import { readFileSync } from 'node:fs';

const LOOK_INTERVAL_MS = 250;
/** The unit in which Linux tells it, on every machine (USER_HZ). */
const TICK_MS = 10;

/** Calls `onOver` once if the process takes more than the bound of that moment; returns what to call at its end. */
export function watchProcessorTime(pid: number, msMax: () => number, onOver: () => void): () => void {
  const timer = setInterval(() => {
    if (processorMs(pid) <= msMax()) return;
    clearInterval(timer);
    onOver();
  }, LOOK_INTERVAL_MS);
  return () => clearInterval(timer);
}

/** The time of all threads of a process (proc_pid_stat(5)); 0 if it has ended, or the system does not tell. */
function processorMs(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    // The name of its program, in parentheses, may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
  } catch {
    return 0;
  }
}
