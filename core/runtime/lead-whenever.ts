/**
 * The loop of work that only the leader among the nodes does: take the lead, work, and start again.
 *
 * Invariants: the lead is released however the work ends. A fault ends only the current try, and the loop retries
 * with backoff.
 */
import { backoff } from '../kernel/backoff.ts';
import type { Pause } from '../ports/clock.ts';
import type { HeldLead } from '../ports/lead.ts';

export interface LeadWheneverOptions<Connection> {
  readonly take: () => Promise<HeldLead<Connection> | null>;
  /**
   * Ends when the lead is lost or the signal aborted. Calls `onWorking` when it works again, which resets the backoff.
   */
  readonly work: (held: HeldLead<Connection>, onWorking: () => void) => Promise<void>;
  /** The pause before a node that does not lead tries again. */
  readonly standbyMs: number;
  readonly pause: Pause;
  /** Called with each error of `take` or `work`. */
  readonly onFault: (cause: unknown) => void;
  /** When aborted, the loop ends. */
  readonly signal: AbortSignal;
}

const FAULT_PAUSE_FIRST_MS = 50;
const FAULT_PAUSE_LAST_MS = 5_000;

/** Runs until the signal is aborted; resolves when the last work has ended. */
export async function leadWhenever<Connection>(options: LeadWheneverOptions<Connection>): Promise<void> {
  const { take, work, standbyMs, pause, onFault, signal } = options;
  const pauses = backoff(FAULT_PAUSE_FIRST_MS, FAULT_PAUSE_LAST_MS);
  while (!signal.aborted) {
    try {
      const held = await take();
      if (held !== null) {
        try {
          await work(held, pauses.reset);
        } finally {
          held.release();
        }
      }
      pauses.reset();
      await pause(standbyMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      onFault(error);
      await pause(pauses.next(), signal);
    }
  }
}
