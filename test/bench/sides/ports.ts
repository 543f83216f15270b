/**
 * Finds free ports, and waits until a server answers on one.
 *
 * Invariants: only the loopback interface is used; every wait is bounded.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** A bench may run at the lowest priority beside other work. */
const START_WAIT_MS = 300_000;

/** Returns a port that was free at the time of the call. */
export async function findFreePort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  if (address === null || typeof address === 'string') throw new Error('No free port');
  return address.port;
}

/** Waits until an answer's status satisfies `isReady`; a connection that fails is tried again. */
export async function waitUntilAnswering(url: string, isReady: (status: number) => boolean): Promise<void> {
  const deadline = performance.now() + START_WAIT_MS;
  let last = 'no answer';
  while (performance.now() < deadline) {
    try {
      const answer = await fetch(url);
      await answer.arrayBuffer();
      if (isReady(answer.status)) return;
      last = `status ${answer.status}`;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    await delay(50);
  }
  throw new Error(`${url} was not ready after ${START_WAIT_MS / 1000} s: ${last}`);
}
