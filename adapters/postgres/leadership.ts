/**
 * Work that one process of all does: whoever holds the lock.
 *
 * Must stay true: the lock lives on a connection, so it falls to another as soon as this process dies or loses that
 * connection; the work is told at once. Two may overlap for a moment, so the work must bear it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';

export interface LeadershipOptions {
  /** Gives a connection of its own to the lock for as long as it is held; no transaction is open on it. */
  readonly pool: pg.Pool;
  /** What the lock is called in the whole database. */
  readonly name: string;
  /** How soon a process notices that nobody leads. */
  readonly intervalMs: number;
  /** Runs while this process leads; the signal says that it no longer does, or is closing. */
  readonly lead: (signal: AbortSignal) => Promise<void>;
  readonly onFault: (cause: unknown) => void;
}

/** Begins to try; the function returned ends the work, waits for it, and gives the lock up. */
export function startLeadership(options: LeadershipOptions): () => Promise<void> {
  const closing = new AbortController();
  const running = tryUntil(options, closing.signal);
  return async () => {
    closing.abort();
    await running;
  };
}

async function tryUntil(options: LeadershipOptions, closing: AbortSignal): Promise<void> {
  while (!closing.aborted) {
    try {
      await leadOnce(options, closing);
    } catch (error) {
      if (!closing.aborted) options.onFault(error);
    }
    await pause(options.intervalMs, closing);
  }
}

/** Resolves at once when somebody else leads. */
async function leadOnce({ pool, name, lead }: LeadershipOptions, closing: AbortSignal): Promise<void> {
  const client = await pool.connect();
  const lost = new AbortController();
  const onLost = (): void => lost.abort();
  client.on('error', onLost);
  client.on('end', onLost);
  try {
    const text = 'SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken';
    const { rows } = await client.query<{ taken: boolean }>(text, [name]);
    if (rows[0]?.taken !== true) return;
    await lead(AbortSignal.any([closing, lost.signal]));
  } finally {
    client.off('error', onLost);
    client.off('end', onLost);
    // With the connection goes the lock.
    client.release(true);
  }
}

/** Ends early, and without a fault, when the signal is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
