/** Looks for what inputs have done to the server: its end, faults in its log, memory, and what they left behind. */
import { setTimeout as sleep } from 'node:timers/promises';
import { gitBelow } from '../support/git-below.ts';
import { leftovers } from '../support/leftovers.ts';
import type { Service } from './service.ts';

export const MEMORY_BYTES_MAX = 2 ** 30;
/** What goes on behind answers, such as compactions, may take this long after the last one. */
const QUIET_SPAN_MS = 30_000;
const LINE_LENGTH_MAX = 4_000;
/** Counters that are 0 as long as nothing went wrong. */
const FAULT_COUNTERS = /^(strata_stray_failures_total|strata_faults_total)(\{[^}]*\})? ([1-9].*)$/gm;

export interface Watch {
  readonly memoryBytesMax: number;
  /** Called while inputs are sent. */
  look(): readonly string[];
  /** Called when none is sent: also looks at files, processes and metrics. */
  lookQuiet(): Promise<readonly string[]>;
}

export function createWatch(service: Service, { quietSpanMs = QUIET_SPAN_MS } = {}): Watch {
  let memoryBytesMax = 0;
  const known = new Set<string>();

  const look = (): string[] => {
    const found = service.takeFaults().map((line) => `in the log: ${line.slice(0, LINE_LENGTH_MAX)}`);
    if (!service.isRunning()) return [...found, 'the server has ended'];
    const memory = service.memoryBytes();
    if (memory > MEMORY_BYTES_MAX && memoryBytesMax <= MEMORY_BYTES_MAX) {
      found.push(`the server holds ${Math.round(memory / 2 ** 20)} MiB`);
    }
    memoryBytesMax = Math.max(memoryBytesMax, memory);
    return found;
  };
  return {
    get memoryBytesMax() {
      return memoryBytesMax;
    },
    look,
    async lookQuiet() {
      const found = look();
      if (!service.isRunning()) return found;
      const left = await leftAfter(service, quietSpanMs);
      if (left.length > 0) found.push(`left behind: ${left.join(', ')}`);
      const metrics = await (await fetch(`${service.url}/metrics`)).text();
      for (const [line] of metrics.matchAll(FAULT_COUNTERS)) {
        if (!known.has(line)) found.push(`in the metrics: ${line}`);
        known.add(line);
      }
      return [...found, ...service.takeFaults().map((line) => `in the log: ${line.slice(0, LINE_LENGTH_MAX)}`)];
    },
  };
}

/** Returns what is still there after the span: temporary files, and git processes. */
export async function leftAfter(
  service: Pick<Service, 'dataDir' | 'env' | 'pid'>,
  spanMs = QUIET_SPAN_MS,
): Promise<readonly string[]> {
  const deadline = performance.now() + spanMs;
  for (;;) {
    const left = [...(await leftovers(service)), ...gitBelow(service.pid).map((command) => `git ${command}`)];
    if (left.length === 0 || performance.now() > deadline) return left;
    await sleep(20);
  }
}
