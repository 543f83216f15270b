/**
 * Which test files may run in one process, one after the other. Most of what a small file costs is to load the product,
 * which such files do once for all of them.
 *
 * Invariants: a file that changes or measures what a whole process has, such as its environment or its memory, runs in
 * a process of its own, and so does one that is not in these rooms.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOMS = [
  ...['test/core/', 'test/projections/', 'test/adapters/', 'test/workflows/', 'test/apps/'],
  // Their servers have processes of their own; what makes accounts is loaded here.
  'test/scenarios/',
];

const OF_THE_PROCESS = [
  // Assigned or deleted; files that only read the environment see the same one.
  /process\.env(\.\w+|\[[^\]]*\])\s*=[^=]|delete process\.env|Object\.assign\(process/,
  // Not `strata.process`, which is a server's.
  /(?<!\.)process\.(chdir|exit|exitCode|on|once|umask|memoryUsage|cpuUsage|resourceUsage|stdout|stderr)\b/,
  /\b(globalThis|registerHooks|setFlagsFromString|eventLoopUtilization|diagnostics_channel|heapUsed|loop-delay)\b/,
  /\b(uncaughtException|unhandledRejection|mock\.timers|useFakeTimers)\b/,
];

/** After this many files a process ends: what they left in its memory goes with it. */
export const FILES_OF_PROCESS_MAX = 25;

/** Returns a function that takes the path of a test file below the root. */
export function createSharing(root: string): (file: string) => boolean {
  const known = new Map<string, boolean>();
  return (file) => {
    const shares = known.get(file) ?? mayShare(root, file);
    known.set(file, shares);
    return shares;
  };
}

function mayShare(root: string, file: string): boolean {
  if (!ROOMS.some((room) => file.startsWith(room))) return false;
  const source = readFileSync(join(root, file), 'utf8');
  return !OF_THE_PROCESS.some((use) => use.test(source));
}
