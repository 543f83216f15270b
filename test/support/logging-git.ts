/** The real git, and what it was started with. */
import { execFileSync } from 'node:child_process';
import { chmodSync, writeFileSync } from 'node:fs';

/** Returns the path of a git that writes its arguments into a file, a line for each start. */
export function loggingGit(log: string): string {
  const program = execFileSync('sh', ['-c', 'command -v git'], { encoding: 'utf8' }).trim();
  const path = `${log}.sh`;
  writeFileSync(path, `#!/bin/sh\necho "$@" >> ${log}\nexec ${program} "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}
