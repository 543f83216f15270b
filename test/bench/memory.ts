/**
 * Samples the memory of a server's processes while it works.
 *
 * Invariants: it uses the proportional set size (proc(5), smaps_rollup), so that pages shared by processes count
 * once; the resident size only where smaps cannot be read. PostgreSQL has a sum of its own, since it has a bound of its
 * own.
 */
import { readlinkSync } from 'node:fs';
import path from 'node:path';
import { type ProcessGroup, readText } from './processes.ts';

export interface MemorySample {
  /** All processes except PostgreSQL's. */
  readonly serverBytes: number;
  /** The part of it that is not backed by a file: the kernel may drop mapped packs at any time. */
  readonly serverAnonymousBytes: number;
  readonly databaseBytes: number;
  /** `serverBytes` by program name. */
  readonly programBytes: Readonly<Record<string, number>>;
}

export interface MemorySampler {
  /** Ends the sampling. Returns the peak of each figure; the programs are those at the peak of `serverBytes`. */
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

/** Samples immediately, then every `intervalMs` until stopped. */
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

/** Returns the executable's name; a program may rename its threads (Node calls its first one MainThread). */
function programOf(pid: number): string {
  try {
    return path.basename(readlinkSync(`/proc/${pid}/exe`));
  } catch {
    // The process has ended, or belongs to another user.
    return readText(`/proc/${pid}/comm`).trim();
  }
}

function field(rollup: string, name: string): number {
  return Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(rollup)?.[1] ?? 0) * 1024;
}
