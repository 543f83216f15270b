/** The lead of processes that a test starts and kills, all in one. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Lead } from '../../core/ports/workflows.ts';

export interface TestLeads {
  /** Of one process, until its death. */
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
          // The lead of a process that died is free at once, whatever it still does.
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
