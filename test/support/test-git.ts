/**
 * Which git the tests use: the first on the PATH, or the one that `STRATA_TEST_GIT` names.
 *
 * Invariants: a run has one git, since clients, helpers of tests and the servers that they start all look on the PATH.
 */
import { execFileSync } from 'node:child_process';
import { basename, delimiter, dirname, isAbsolute } from 'node:path';

/** Called once at the start of the test runner, and of each program that starts servers or clients as tests do. */
export function chooseTestGit(env: NodeJS.ProcessEnv = process.env): void {
  const chosen = env['STRATA_TEST_GIT'] ?? '';
  if (chosen === '') return;
  if (!isAbsolute(chosen) || basename(chosen) !== 'git') {
    throw new Error(`STRATA_TEST_GIT takes the absolute path of a program named git, not ${chosen}`);
  }
  // A path where no git runs would leave the tests with the machine's own.
  execFileSync(chosen, ['version'], { stdio: ['ignore', 'ignore', 'inherit'] });
  env['PATH'] = [dirname(chosen), env['PATH'] ?? '/usr/bin:/bin'].join(delimiter);
}
