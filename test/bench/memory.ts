/**
 * Memory of a server's processes, sampled while it works.
 *
 * Must stay true: proportional set size (proc(5), smaps_rollup), so that pages shared by processes count once;
 * resident size only where smaps cannot be read. PostgreSQL is summed apart, since its bound is its own.
 */
import { type ProcessGroup, readText } from './processes.ts';

export interface MemorySample {
  /** All processes but PostgreSQL's. */
  readonly serverBytes: number;
  /** Of these, what is not backed by a file: mapped packs can be dropped by the kernel at any time. */
  readonly serverAnonymousBytes: number;
  readonly databaseBytes: number;
}

export interface MemorySampler {
  /** Ends the sampling. Peaks of each figure on its own. */
  stop(): MemorySample;
}

const PAGE_BYTES = 4096;

export function sampleMemory(group: ProcessGroup): MemorySample {
  let serverBytes = 0;
  let serverAnonymousBytes = 0;
  let databaseBytes = 0;
  for (const pid of group.pids()) {
    const rollup = readText(`/proc/${pid}/smaps_rollup`);
    const bytes =
      rollup === '' ? Number(readText(`/proc/${pid}/statm`).split(' ')[1] ?? 0) * PAGE_BYTES : field(rollup, 'Pss');
    if (readText(`/proc/${pid}/comm`).startsWith('postgres')) databaseBytes += bytes;
    else {
      serverBytes += bytes;
      serverAnonymousBytes += rollup === '' ? bytes : field(rollup, 'Pss_Anon');
    }
  }
  return { serverBytes, serverAnonymousBytes, databaseBytes };
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

function field(rollup: string, name: string): number {
  return Number(new RegExp(`^${name}: +(\\d+) kB`, 'm').exec(rollup)?.[1] ?? 0) * 1024;
}
