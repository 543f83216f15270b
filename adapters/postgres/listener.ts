/**
 * The connection that PostgreSQL notifies of new events.
 *
 * Must stay true: a notification is only a hint. Subscriptions read the log every half second even if none arrives.
 *
 * It waits on Node's timer, not on the port `Pause`: only a connection to a real server depends on the wait, and no
 * test's clock can move that.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { backoff } from '../../core/kernel/backoff.ts';
import { connectClient, type PoolOptions } from './pool.ts';

const RECONNECT_PAUSE_FIRST_MS = 100;
const RECONNECT_PAUSE_LAST_MS = 5_000;

export interface Listener {
  close(): Promise<void>;
}

/**
 * Listens until closed and reconnects whenever the connection is lost. Calls `onHint` with the position that the log
 * reaches, or with null after each connect, when that is unknown.
 */
export function listen(options: PoolOptions, onHint: (head: LogPosition | null) => void): Listener {
  const closing = new AbortController();
  let client: pg.Client | null = null;

  async function run(): Promise<void> {
    const pauses = backoff(RECONNECT_PAUSE_FIRST_MS, RECONNECT_PAUSE_LAST_MS);
    while (!closing.signal.aborted) {
      try {
        client = await connectClient(options);
        const ended = new Promise<void>((resolve) => client?.once('end', resolve));
        client.on('notification', ({ payload }) => onHint(headOf(payload)));
        await client.query('LISTEN strata_events');
        pauses.reset();
        onHint(null);
        if (closing.signal.aborted) await client.end();
        await ended;
      } catch (error) {
        // An error after `close` is of no interest: no subscription waits for events any more.
        if (!closing.signal.aborted) {
          options.log.warn({ err: error }, 'Cannot listen for new events: reading the log every half second only');
        }
        await client?.end();
      }
      client = null;
      // This sleep rejects only when `close` aborts it.
      await sleep(pauses.next(), undefined, { signal: closing.signal }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    close: async () => {
      closing.abort();
      await client?.end();
      await running;
    },
  };
}

/** Any database user can send a notification. One that holds no position is a hint as well: null. */
function headOf(payload: string | undefined): LogPosition | null {
  return payload !== undefined && /^\d{1,18}$/.test(payload) ? (BigInt(payload) as LogPosition) : null;
}
