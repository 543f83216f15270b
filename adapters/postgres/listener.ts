/**
 * A connection on which PostgreSQL notifies this process.
 *
 * Invariants: a notification is only a hint: any database user can send one, and one that was sent while the
 * connection was lost never arrives.
 *
 * It waits on Node's timer, not on the port `Pause`: only a connection to a real server depends on the wait, and no
 * test's clock can move that.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type pg from 'pg';
import { backoff } from '../../core/kernel/backoff.ts';
import { connectClient, type PoolOptions } from './pool.ts';

const RECONNECT_PAUSE_FIRST_MS = 100;
const RECONNECT_PAUSE_LAST_MS = 5_000;

export interface Listener {
  close(): Promise<void>;
}

export interface Listening {
  /** A name that needs no quotes. */
  readonly channel: string;
  readonly onNotification: (payload: string) => void;
  /** Called after each connect. */
  readonly onConnected: () => void;
  /** Logged whenever the connection is lost or cannot be made. */
  readonly whenLost: string;
}

/** Listens until closed, and reconnects whenever the connection is lost. */
export function listen(options: PoolOptions, { channel, onNotification, onConnected, whenLost }: Listening): Listener {
  const closing = new AbortController();
  let client: pg.Client | null = null;

  async function run(): Promise<void> {
    const pauses = backoff(RECONNECT_PAUSE_FIRST_MS, RECONNECT_PAUSE_LAST_MS);
    while (!closing.signal.aborted) {
      try {
        client = await connectClient(options);
        const ended = new Promise<void>((resolve) => client?.once('end', resolve));
        client.on('notification', ({ payload }) => onNotification(payload ?? ''));
        await client.query(`LISTEN ${channel}`);
        pauses.reset();
        onConnected();
        if (closing.signal.aborted) await client.end();
        await ended;
      } catch (error) {
        // An error after `close` is of no interest: nobody waits for notifications any more.
        if (!closing.signal.aborted) options.log.warn({ err: error }, whenLost);
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
