/**
 * One node that leads, by an advisory lock of PostgreSQL (core/ports/workflows.ts, `Lead`).
 *
 * Must stay true: the lock lives on a connection that is held as long as the work; whoever loses it is told by the
 * signal, as soon as the loss is seen. For that moment two may lead: what they do must bear it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { Log } from '../../core/ports/log.ts';
import type { Lead } from '../../core/ports/workflows.ts';

export interface PostgresLeadOptions {
  /** Gives a connection to each lead for as long as it lasts. */
  readonly pool: pg.Pool;
  readonly log: Log;
  /** How soon a node notices that nobody leads. */
  readonly intervalMs?: number;
}

const INTERVAL_MS = 1_000;
/** A leading session says something this often, and PostgreSQL ends one that was silent for the span: one that froze. */
const SIGN_OF_LIFE_MS = 500;
const SILENCE_SPAN_MS = 3_000;
const FAULT_PAUSE_FIRST_MS = 50;
const FAULT_PAUSE_LAST_MS = 5_000;

/** The lock, and with it, at once, the bound of its session's silence; PostgreSQL before 14 has none. */
const TAKE_LEAD = `
  SELECT taken, CASE WHEN taken THEN (
    SELECT count(set_config(name, $2, false)) FROM pg_settings WHERE name = 'idle_session_timeout'
  ) END AS bounded
  FROM (SELECT pg_try_advisory_lock(hashtextextended($1, 0)) AS taken) AS tried`;

export function createPostgresLead({ pool, log, intervalMs = INTERVAL_MS }: PostgresLeadOptions): Lead {
  async function take(name: string): Promise<pg.PoolClient | null> {
    const client = await pool.connect();
    try {
      const { rows } = await client.query<{ taken: boolean }>({
        text: TAKE_LEAD,
        values: [`strata.lead.${name}`, String(SILENCE_SPAN_MS)],
      });
      if (rows[0]?.taken === true) return client;
    } catch (error) {
      client.release(true);
      throw error;
    }
    client.release();
    return null;
  }

  return {
    whenever(name, work) {
      const ending = new AbortController();
      const { signal } = ending;
      const leading = leadUntil(signal);
      return async () => {
        ending.abort();
        await leading;
      };

      async function leadUntil(ended: AbortSignal): Promise<void> {
        let pauseMs = FAULT_PAUSE_FIRST_MS;
        while (!ended.aborted) {
          try {
            const client = await take(name);
            if (client !== null) await hold(client, ended, work);
            pauseMs = FAULT_PAUSE_FIRST_MS;
            await pause(intervalMs, ended);
          } catch (error) {
            if (!ended.aborted) log.warn({ err: error, lead: name }, 'A lead was lost; it is taken anew');
            await pause(pauseMs, ended);
            pauseMs = Math.min(pauseMs * 2, FAULT_PAUSE_LAST_MS);
          }
        }
      }
    },
  };
}

/** Works while the connection lasts, and ends it afterwards: the lock goes with it. */
async function hold(
  client: pg.PoolClient,
  ended: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const lost = new AbortController();
  const onLost = (): void => lost.abort();
  client.on('error', onLost);
  client.on('end', onLost);
  const life = setInterval(() => {
    client.query('SELECT 1').catch(onLost);
  }, SIGN_OF_LIFE_MS);
  try {
    await work(AbortSignal.any([ended, lost.signal]));
  } finally {
    clearInterval(life);
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
