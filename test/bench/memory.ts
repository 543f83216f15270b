/**
 * Memory of a server's processes, sampled while it works.
 *
 * Must stay true: proportional set size (proc(5), smaps_rollup), so that pages shared by processes count once;
 * resident size only where smaps cannot be read. PostgreSQL is summed apart, since its bound is its own.
 */
import { readlinkSync } from 'node:fs';
import path from 'node:path';
import { type ProcessGroup, readText } from './processes.ts';

export interface MemorySample {
  /** All processes but PostgreSQL's. */
  readonly serverBytes: number;
  /** Of these, what is not backed by a file: mapped packs can be dropped by the kernel at any time. */
  readonly serverAnonymousBytes: number;
  readonly databaseBytes: number;
  /** `serverBytes` by the name of the program. */
  readonly programBytes: Readonly<Record<string, number>>;
}

export interface MemorySampler {
  /** Ends the sampling. Peaks of each figure on its own; programs at the server's peak. */
  stop(): MemorySample;
}

const PAGE_BYTES = 4096;

export function sampleMemory(group: ProcessGroup): MemorySample {
  let serverBytes = 0;
  let serverAnonymousBytes = 0;
  let databaseBytes = 0;
  const programBytes: Record<string, number> = {};
  for (const pid of group.pids()) {
    const rollup = readText(`/proc/${pid}/smaps_rollup`);
    const bytes =
      rollup === '' ? Number(readText(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES : field(rollup, 'Pss');
    const program = programOf(pid);
    if (program === 'postgres') databaseBytes += bytes;
    else {
      programBytes[program] = (programBytes[program] ?? 0) + bytes;
      serverBytes += bytes;
      serverAnonymousBytes += rollup === '' ? bytes : field(rollup, 'Pss_Anon');
    }
  }
  return { serverBytes, serverAnonymousBytes, databaseBytes, programBytes };
}

/** Samples at once, then every `intervalMs` until stopped. */
export function startMemorySampler(group: ProcessGroup, intervalMs: number): MemorySampler {
  let peak = sampleMemory(group);
  const take = (): void => {
    const sample = sampleMemory(group);
    peak = {
      serverBytes: Math.max(peak.serverBytes, sample.serverBytes),
      serverAnonymousBytes: Math.max(peak.serverAnonymousBytes, sample.serverAnonymousBytes),
      databaseBytes: Math.max(peak.databaseBytes, sample.databaseBytes),
      programBytes: sample.serverBytes > peak.serverBytes ? sample.programBytes : peak.programBytes,
    };
  };
  const timer = setInterval(take, intervalMs);
  return {
    stop() {
      clearInterval(timer);
      take();
      return peak;
    },
  };
}

/** The executable's name; programs may rename their threads (Node calls its first MainThread). */
function programOf(pid: number): string {
  try {
    return path.basename(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    // It has ended, or is another user's.
    return readText(`/proc/${pid}/comm`).trim();
  }
}

function field(rollup: string, name: string): number {
  return Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(rollup)?.[1] ?? 0) * 1024;
}
