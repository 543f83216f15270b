/**
 * Tests of process groups: CPU and memory are counted, and no process is left running.
 *
 * Invariants: both ways of counting include children of children.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, test } from 'vitest';
import { sampleMemory } from './memory.ts';
import { createProcessGroup } from './processes.ts';

/** A child that uses CPU and prints its id, below a parent that waits. */
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
          // The first `end` has removed the cgroup.
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
    // The signal fails with ESRCH once the process is gone.
    return false;
  }
}
