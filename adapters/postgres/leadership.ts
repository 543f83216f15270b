/**
 * Work that one process of all does: whoever holds the lock.
 *
 * Must stay true: the lock lives on a connection, so it falls to another as soon as this process dies or loses that
 * connection, and within seconds when it freezes; the work is told at once. Two may overlap for a moment, so the work must bear it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';

/** A leading session says something this often, and PostgreSQL ends one that was silent for the span. */
const SIGN_OF_LIFE_MS = 500;
const SILENCE_SPAN_MS = 3_000;

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

/**
 * The lock, and with it a bound on the session's silence: a process that froze loses it. PostgreSQL before 14 has none.
 */
const TAKE_LEAD = `
  SELECT taken, CASE WHEN taken THEN (
    SELECT count(set_config(name, $2, false)) FROM pg_settings WHERE name = 'idle_session_timeout'
  ) END AS bounded
  FROM (SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken) AS tried`;

/** Resolves at once when somebody else leads. */
async function leadOnce({ pool, name, lead }: LeadershipOptions, closing: AbortSignal): Promise<void> {
  const client = await pool.connect();
  const lost = new AbortController();
  const onLost = (): void => lost.abort();
  client.on('error', onLost);
  client.on('end', onLost);
  let taken = false;
  let failed = true;
  try {
    const { rows } = await client.query<{ taken: boolean }>(TAKE_LEAD, [name, String(SILENCE_SPAN_MS)]);
    taken = rows[0]?.taken === true;
    if (taken) {
      const endSignsOfLife = giveSignsOfLife(client, onLost);
      await lead(AbortSignal.any([closing, lost.signal])).finally(endSignsOfLife);
    }
    failed = false;
  } finally {
    client.off('error', onLost);
    client.off('end', onLost);
    // With the connection goes the lock.
    client.release(taken || failed);
  }
}

function giveSignsOfLife(client: pg.PoolClient, onLost: () => void): () => void {
  const timer = setInterval(() => {
    client.query('SELECT 1').catch(onLost);
  }, SIGN_OF_LIFE_MS);
  return () => clearInterval(timer);
}

/** Ends early, and without a fault, when the signal is aborted. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, { signal });
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
