/**
 * How vitest runs the tests: with Node's own loader, so that a test loads a module as the product does, and each file
 * in a process of its own unless it may share one.
 *
 * Invariants: vitest's files that outlive a run are below .cache/, which git ignores.
 */
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { defineConfig, type ViteUserConfig, type ViteUserConfigFnObject } from 'vitest/config';
import { ROOT } from '../architecture/source-tree.ts';
import { chooseTestGit } from '../support/test-git.ts';
import { createProcessPool } from './process-pool.ts';
import { createRunReporter } from './run-reporter.ts';
import { ServersFirst } from './servers-first.ts';

chooseTestGit();

const MINUTE_MS = 60_000;
/** Files that take minutes: `npm run test:long`. */
const LONG = 'test/**/*.long.test.ts';
/** Sample sources that the architecture checks must refuse. */
const NO_TESTS = ['test/architecture/samples/**'];

export interface TimeLimits {
  /** For one file, from its first test to its last. */
  readonly fileMsMax: number;
  /** The same for files that take minutes. */
  readonly longFileMsMax: number;
  /** How long a process may take to exit after its last test. */
  readonly lingerMsMax: number;
}

/** Returns the settings with these limits; the tests of the limits pass shorter ones. */
export function configOf({ fileMsMax, longFileMsMax, lingerMsMax }: TimeLimits): ViteUserConfigFnObject {
  return defineConfig(({ mode }) => settingsOf(mode, mode === 'long' ? longFileMsMax : fileMsMax, lingerMsMax));
}

function settingsOf(mode: string, fileMsMax: number, lingerMsMax: number): ViteUserConfig {
  const pool = createProcessPool({ root: ROOT, fileMsMax, lingerMsMax });
  return {
    root: ROOT,
    cacheDir: join(ROOT, '.cache', 'vitest'),
    test: {
      include: mode === 'long' ? [LONG] : ['test/**/*.test.ts'],
      exclude: mode === 'long' ? NO_TESTS : [LONG, ...NO_TESTS],
      watch: false,
      pool: pool.runner,
      // The pool chooses which files share a process.
      isolate: false,
      // One more than there are cores, since scenarios often wait for clocks and disks.
      maxWorkers: availableParallelism() + 1,
      maxConcurrency: 8,
      // Below the limit of a file, so that the report names a test that hangs; on an idle machine no test needs as
      // long.
      testTimeout: fileMsMax / 2,
      hookTimeout: fileMsMax / 2,
      teardownTimeout: MINUTE_MS,
      globalSetup: [join(import.meta.dirname, 'shared-parts.ts')],
      setupFiles: [join(import.meta.dirname, 'name-shared-parts.ts')],
      sequence: { sequencer: ServersFirst },
      reporters: [['default', { summary: false }], createRunReporter({ root: ROOT, pool })],
      // The output of a test is shown only when it fails.
      silent: 'passed-only',
      // Node's own loader, as in the product; no module can be replaced by a mock.
      experimental: { viteModuleRunner: false, nodeLoader: false },
    },
  };
}

export default configOf({
  fileMsMax: 8 * MINUTE_MS,
  longFileMsMax: 20 * MINUTE_MS,
  lingerMsMax: 10_000,
});
