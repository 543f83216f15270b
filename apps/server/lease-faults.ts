/**
 * Says which part read leases wait for: they are rows of PostgreSQL, and hold how far the log was heard of.
 *
 * Invariants: an outage of a part is one line a minute, however often the leases ask in between.
 */
import { EventStoreError } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';

const TOLD_AGAIN_MS = 60_000;

/** `logName`: what holds the log. */
export function createLeaseFaults(
  logName: 'PostgreSQL' | 'EventStoreDB',
  log: Log,
  monotonicMs: () => number,
): (cause: unknown) => void {
  const toldMs = new Map<string, number>();
  return (err) => {
    const part = err instanceof EventStoreError ? logName : 'PostgreSQL';
    const now = monotonicMs();
    if (now - (toldMs.get(part) ?? -Infinity) < TOLD_AGAIN_MS) return;
    toldMs.set(part, now);
    log.warn({ err }, `Read leases wait for ${part}`);
  };
}
