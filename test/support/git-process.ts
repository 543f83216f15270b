/** The real git of this machine, run for tests in a given folder without the user's configuration. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface GitRun {
  readonly cwd?: string;
  readonly input?: string | Uint8Array;
  readonly env?: { readonly [name: string]: string };
}

/** Runs git and returns its standard output; throws when git fails. */
export function git(args: readonly string[], run: GitRun = {}): Buffer {
  return execFileSync('git', [...args], {
    cwd: run.cwd ?? tmpdir(),
    input: run.input,
    env: { ...ENVIRONMENT, PATH: process.env['PATH'] ?? '/usr/bin:/bin', ...run.env },
    stdio: ['pipe', 'pipe', 'pipe'],
    maxBuffer: 256 * 1024 * 1024,
  });
}

const ENVIRONMENT = {
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_AUTHOR_NAME: 'A',
  GIT_AUTHOR_EMAIL: 'a@example.org',
  GIT_COMMITTER_NAME: 'A',
  GIT_COMMITTER_EMAIL: 'a@example.org',
};

/** A new folder below the system's temporary folder; `remove` deletes it. */
export function temporaryFolder(name: string): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), `strata-${name}-`));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
