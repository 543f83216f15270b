/**
 * Groups of processes: what a server costs and that nothing of it stays.
 *
 * Must stay true: both ways of counting see the children of children.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { sampleMemory } from './memory.ts';
import { createProcessGroup } from './processes.ts';

/** A child that works, and prints its id, under a parent that waits. */
const WORKER =
  'let n = 0; for (let i = 0; i < 3e8; i += 1) n += i % 7; console.log(process.pid); setInterval(() => n, 1e6)';
const SCRIPT = `require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(WORKER)}], { stdio: 'inherit' })`;

describe('a group of processes', () => {
  for (const allowCgroup of [true, false]) {
    test(`counts CPU time and memory of a child's child and ends both, ${allowCgroup ? 'by cgroup if it can' : 'by /proc'}`, async () => {
      const group = createProcessGroup(`test-${allowCgroup}`, 0, allowCgroup);
      if (!allowCgroup) assert.equal(group.accounting, '/proc');
      try {
        const child = group.start(process.execPath, ['-e', SCRIPT], { stdio: ['ignore', 'pipe', 'inherit'] });
        assert.ok(child.stdout !== null);
        const [printed] = await once(child.stdout, 'data');
        const worker = Number(String(printed).trim());
        assert.ok(group.pids().includes(worker));
        assert.ok(group.cpuSeconds() > 0.1, `the loop of the worker took ${group.cpuSeconds()} s of CPU`);
        assert.ok(sampleMemory(group).serverBytes > 10_000_000);
        await group.end();
        while (isAlive(worker)) await delay(10);
        assert.equal(isAlive(child.pid ?? 0), false);
      } finally {
        await group.end().catch((error: unknown) => {
          // The cgroup is gone after the first end.
          if (!String(error).includes('ENOENT')) throw error;
        });
      }
    });
  }
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    // ESRCH is the answer that the test waits for.
    return false;
  }
}
