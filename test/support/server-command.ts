/**
 * The arguments that start the server under test.
 *
 * Invariants: Node gets the options that `apps/launcher/launch.mjs` gives it, so that memory is measured as users
 * have it; without them V8 sizes its young generation by the machine's memory.
 */
import path from 'node:path';

export const LAUNCHER_OPTIONS = [
  '--disable-warning=ExperimentalWarning',
  '--max-semi-space-size=16',
  '--heap-growing-percent=100',
  '--preserve-symlinks',
  '--preserve-symlinks-main',
] as const;

export const SERVER_COMMAND = serverCommand(path.resolve(import.meta.dirname, '../..'));

/** `sources` is the folder of the version to start. */
export function serverCommand(sources: string): string[] {
  return [...LAUNCHER_OPTIONS, path.join(sources, 'apps/server/main.ts')];
}
