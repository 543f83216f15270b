/** Leader election among processes that a test starts and kills, simulated inside one process. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lead } from '../../core/ports/lead.ts';

export interface TestLeads {
  /** The `Lead` of one process, until that process dies. */
  of(dead: AbortSignal): Lead;
}

export function createTestLeads(): TestLeads {
  const leading = new Set<string>();

  async function leadUntil(
    name: string,
    signal: AbortSignal,
    dead: Promise<void>,
    work: Parameters<Lead['whenever']>[1],
  ) {
    while (!signal.aborted) {
      if (!leading.has(name)) {
        leading.add(name);
        try {
          // When a process dies, others may lead immediately, whatever its work still does.
          await Promise.race([work(signal), dead]);
        } finally {
          leading.delete(name);
        }
      }
      await sleep(5);
    }
  }

  return {
    of: (dead) => ({
      whenever(name, work) {
        const ending = new AbortController();
        const death = new Promise<void>((resolve) => {
          dead.addEventListener('abort', () => resolve(), { once: true });
        });
        const ended = leadUntil(name, AbortSignal.any([ending.signal, dead]), death, work);
        return async () => {
          ending.abort();
          await ended;
        };
      },
    }),
  };
}
