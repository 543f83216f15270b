/**
 * The connection that hears of new events.
 *
 * Must stay true: it is only a hint. Whatever happens to it, subscriptions look for themselves every half second.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { connectClient, type PoolOptions } from './pool.ts';

const RECONNECT_DELAY_MS_MIN = 100;
const RECONNECT_DELAY_MS_MAX = 5_000;

export interface Listener {
  close(): Promise<void>;
}

/**
 * Listens until closed, connecting again whenever the connection is lost; tells how far the log reaches, null after
 * each connect, when that is not known.
 */
export function listen(options: PoolOptions, onHint: (head: LogPosition | null) => void): Listener {
  const closing = new AbortController();
  let client: pg.Client | null = null;

  async function run(): Promise<void> {
    let delayMs = RECONNECT_DELAY_MS_MIN;
    while (!closing.signal.aborted) {
      try {
        client = await connectClient(options);
        const ended = new Promise<void>((resolve) => client?.once('end', resolve));
        client.on('notification', ({ payload }) => onHint(headOf(payload)));
        await client.query('LISTEN strata_events');
        delayMs = RECONNECT_DELAY_MS_MIN;
        onHint(null);
        if (closing.signal.aborted) await client.end();
        await ended;
      } catch (error) {
        // Closed before it was connected: nobody waits for events any more.
        if (!closing.signal.aborted) {
          options.log.warn({ err: error }, 'Cannot listen for new events: looking every half second only');
        }
        await client?.end();
      }
      client = null;
      // The one way this sleep rejects is `close`.
      await sleep(delayMs, undefined, { signal: closing.signal }).catch(() => undefined);
      delayMs = Math.min(delayMs * 2, RECONNECT_DELAY_MS_MAX);
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

/** Anybody may notify: what is no position is a hint all the same. */
function headOf(payload: string | undefined): LogPosition | null {
  return payload !== undefined && /^\d{1,18}$/.test(payload) ? (BigInt(payload) as LogPosition) : null;
}
