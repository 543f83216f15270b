/** Statements that ride out a short outage: PostgreSQL restarts in a second. */
import { setTimeout as sleep } from 'node:timers/promises';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { failureOf } from './failures.ts';

const RETRY_DELAY_MS_MIN = 20;
const RETRY_DELAY_MS_MAX = 500;

/**
 * Runs it again while the connection is lost or the server had to roll back, for a span at most. Then throws
 * `log-unavailable`; any other failure is thrown as it is. Only for what may run twice: reads, and writes that have
 * no effect the second time.
 */
export async function retryRepeatable<T>(spanMs: number, run: () => Promise<T>): Promise<T> {
  const giveUpMs = performance.now() + spanMs;
  for (let delayMs = RETRY_DELAY_MS_MIN; ; delayMs = Math.min(delayMs * 2, RETRY_DELAY_MS_MAX)) {
    try {
      return await run();
    } catch (error) {
      if (failureOf(error) === 'other') throw error;
      if (performance.now() + delayMs > giveUpMs) {
        throw new EventStoreError('log-unavailable', 'PostgreSQL cannot be reached', { cause: error });
      }
    }
    await sleep(delayMs);
  }
}
