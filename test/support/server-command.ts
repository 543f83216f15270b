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
] as const;

export const SERVER_COMMAND = [...LAUNCHER_OPTIONS, path.resolve(import.meta.dirname, '../../apps/server/main.ts')];
