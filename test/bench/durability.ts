/**
 * Measures what an acknowledged push survives: counts with strace, where it is installed, the calls that request
 * durability from the kernel during one push.
 *
 * Invariants: nothing else is measured while strace is attached; without strace the column states only the
 * configuration.
 */
import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { createConnection } from './connection.ts';
import { perform } from './load.ts';
import type { DurabilityProbe } from './rounds.ts';
import type { Side } from './sides/side.ts';

const ATTACH_WAIT_MS = 500;
/**
 * PostgreSQL's own checkpoints rarely coincide with a push of a few milliseconds; the median of three excludes them.
 */
const PUSHES = 3;
const CALLS = 'fsync,fdatasync,sync_file_range,syncfs,sync';

export function createDurabilityProbe(workFolder: string): DurabilityProbe {
  return async (side, workload) => {
    const counts: number[] = [];
    await workload.replenish?.();
    for (let push = 0; push < PUSHES; push += 1) {
      const operation = workload.next(0);
      if (operation === null) break;
      const count = await countSyncs(side, path.join(workFolder, 'strace.out'), async () => {
        const connection = createConnection(side.port);
        await perform(connection, operation);
        connection.close();
      });
      if (count !== null) counts.push(count);
    }
    const middle = counts.toSorted((a, b) => a - b)[counts.length >> 1];
    if (middle === undefined) return `${side.durability} (calls not counted: strace is missing)`;
    return `${side.durability}: ${middle === 0 ? 'no fsync' : `${middle} fsync`}`;
  };
}

/** Returns null when strace is not installed. */
async function countSyncs(side: Side, file: string, push: () => Promise<void>): Promise<number | null> {
  const targets = side.group.pids().flatMap((pid) => ['-p', String(pid)]);
  const tracer = spawn('strace', ['-f', '-qq', '-e', `trace=${CALLS}`, '-o', file, ...targets], { stdio: 'ignore' });
  const ended = new Promise<boolean>((resolve) => {
    tracer.once('error', () => resolve(false));
    tracer.once('exit', () => resolve(true));
  });
  const missing = await Promise.race([ended.then((found) => !found), delay(ATTACH_WAIT_MS).then(() => false)]);
  if (missing) return null;
  try {
    await push();
    await side.group.settle();
  } finally {
    tracer.kill('SIGINT');
    await ended;
  }
  const lines = (await readFile(file, 'latin1')).split('\n');
  // strace writes a call that another process interrupts in two lines; the second one says "resumed".
  return lines.filter((line) => /^\d+ +(f|fdata|sync)/.test(line) && !line.includes('resumed>')).length;
}
