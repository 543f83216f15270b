/**
 * A network of its own for the servers of a test, with one address that counts as public.
 *
 * Invariants: nothing in it is reached from outside, and nothing in it reaches further than this machine: it has a
 * loopback interface and no other. What crosses its border is Unix sockets, which the test names.
 */
import { spawnSync } from 'node:child_process';

/** An address of those for documentation (RFC 5737), which no server refuses as a private one. */
export const PUBLIC_ADDRESS = '203.0.113.10';

const PREPARE = `ip link set lo up && ip addr add ${PUBLIC_ADDRESS}/32 dev lo && exec "$@"`;

/** Returns program and words that run a command in a new network; root needs no new user for it. */
export function inOwnNetwork(command: readonly string[]): readonly [program: string, ...words: string[]] {
  return ['unshare', process.getuid?.() === 0 ? '-n' : '-rn', 'sh', '-c', PREPARE, 'sh', ...command];
}

let possible: boolean | null = null;

/** Whether this machine lets its user make one: Linux with `unshare`, `ip` and the right to use them. */
export function hasOwnNetworks(): boolean {
  if (possible === null) {
    const [program, ...words] = inOwnNetwork(['true']);
    possible = spawnSync(program, words, { stdio: 'ignore', timeout: 10_000 }).status === 0;
  }
  return possible;
}
