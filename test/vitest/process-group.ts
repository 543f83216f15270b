/** The processes that a process and its children have started in one process group. */
import { spawnSync } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';

/** How long members may take to exit after their leader has ended. */
const GRACE_MS = 500;
const POLL_MS = 20;

/** Kills the remaining processes of a group, if any. */
export function endGroup(leader: number): void {
  // A signal to process 0 would reach the caller's own group.
  if (leader <= 0) return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    // macOS reports EPERM for a group whose only member is a zombie.
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
  }
}

/** Returns the command lines of the members that do not exit soon after their leader. */
export async function groupMembers(leader: number): Promise<readonly string[]> {
  for (let waitedMs = 0; hasMembers(leader); waitedMs += POLL_MS) {
    if (waitedMs >= GRACE_MS) return commandLines(leader);
    await sleep(POLL_MS);
  }
  return [];
}

function hasMembers(leader: number): boolean {
  try {
    return process.kill(-leader, 0);
  } catch {
    return false;
  }
}

function commandLines(leader: number): readonly string[] {
  const { stdout, error } = spawnSync('ps', ['-A', '-o', 'pgid=,stat=,args='], { encoding: 'utf8' });
  if (error !== undefined) return ['processes whose names are unknown, since `ps` failed'];
  const members = stdout.split('\n').map((line) => /^\s*(\d+)\s+(\S+)\s+(.*)$/.exec(line));
  return members.flatMap((member) => {
    const [, group, state = '', args = ''] = member ?? [];
    return Number(group) === leader && !state.startsWith('Z') ? [args] : [];
  });
}
