/**
 * Control groups of memory as a test sees them, without the code under test: version 1, at its usual place.
 *
 * Invariants: a test that needs a real group is skipped with the reason where none can be made.
 */
import { mkdtempSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { familyOf, textOfProcess } from './process-family.ts';

const HIERARCHY = '/sys/fs/cgroup/memory';

/** Why no real group can be made here; false where it can. */
export const NO_MEMORY_GROUP: string | false = whyNone();

function whyNone(): string | false {
  try {
    const folder = mkdtempSync(path.join(groupOf(process.pid), 'strata-test-'));
    try {
      readFileSync(path.join(folder, 'memory.limit_in_bytes'));
    } finally {
      rmdirSync(folder);
    }
    return false;
  } catch (cause) {
    return `needs a control group of memory (version 1) that it may write: ${cause instanceof Error ? cause.message : cause}`;
  }
}

/** The folder of the group that a process is in. */
export function groupOf(pid: number): string {
  const own = /^\d+:memory:(.*)$/m.exec(textOfProcess(`/proc/${pid}/cgroup`))?.[1];
  if (own === undefined) throw new Error(`${HIERARCHY} is not a hierarchy of process ${pid}`);
  return path.join(HIERARCHY, own);
}

/** The process helper below a server. */
export function helperBelow(pid: number | undefined): number {
  const helper = familyOf(pid ?? 0).find((each) =>
    textOfProcess(`/proc/${each}/cmdline`).includes('process-helper.ts'),
  );
  if (helper === undefined) throw new Error(`There is no process helper below ${pid}`);
  return helper;
}

export function setBound(folder: string, bytes: number): void {
  writeFileSync(path.join(folder, 'memory.limit_in_bytes'), String(bytes));
}

export function boundOf(folder: string): number {
  return Number(readFileSync(path.join(folder, 'memory.limit_in_bytes'), 'latin1'));
}

/** How many processes the kernel has ended in it. */
export function endedIn(folder: string): number {
  return Number(/^oom_kill (\d+)$/m.exec(readFileSync(path.join(folder, 'memory.oom_control'), 'latin1'))?.[1]);
}
