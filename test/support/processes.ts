/** Watches processes of this machine from tests. */
import { execFileSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/** Returns whether a process runs; a zombie does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !execFileSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8', stdio: 'pipe' }).startsWith('Z');
  } catch {
    return false;
  }
}

/** Resolves when the condition holds; rejects when it does not hold within about a minute: machines may be slow. */
export async function eventually(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 3_000; tries += 1) {
    if (await holds()) return;
    await sleep(20);
  }
  throw new Error(`Did not happen within a minute: ${what}`);
}
