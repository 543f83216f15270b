/**
 * Describes what the figures were measured on, in one line each.
 *
 * Invariants: the versions come from the very programs that are measured.
 */
import { execFile } from 'node:child_process';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { promisify } from 'node:util';
import type { HttpBackendPrograms } from './sides/http-backend.ts';

const run = promisify(execFile);

export function describeMachine(): string {
  const model = cpus()[0]?.model.replace(/\s+/g, ' ').trim() ?? 'an unknown processor';
  return `${availableParallelism()} cores (${model}), ${Math.round(totalmem() / 1024 ** 3)} GiB`;
}

export async function describeVersions(programs: HttpBackendPrograms | null): Promise<string> {
  const { stdout } = await run('git', ['--version']);
  const versions = [stdout.trim().replace('git version', 'git'), `Node ${process.versions.node}`];
  if (programs !== null) {
    const { stderr } = await run(programs.nginx, ['-v']);
    versions.push(stderr.trim().replace(/^.*nginx\//, 'nginx '));
  }
  return versions.join(', ');
}
