/**
 * The floor below a real client's wall time: a server that sends canned answers and does nothing else.
 *
 * Invariants: it answers the requests of one recorded command, in order, and then starts again with the first.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { RecordedExchange } from '../recorder.ts';

export interface Floor {
  readonly port: number;
  close(): Promise<void>;
}

export async function startFloor(exchanges: readonly RecordedExchange[]): Promise<Floor> {
  let next = 0;
  const server = createServer((incoming, outgoing) => {
    // Reads the whole request before the answer, as every server must for a push.
    incoming.resume();
    incoming.once('end', () => {
      const canned = exchanges[next % exchanges.length];
      next += 1;
      if (canned === undefined || canned.method !== incoming.method) {
        outgoing.writeHead(500).end('The client sent other requests than were recorded');
        return;
      }
      const { answer } = canned;
      outgoing.writeHead(answer.status, [...answer.headers, 'Content-Length', String(answer.body.length)]);
      outgoing.end(answer.body);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The floor has no port');
  return {
    port: address.port,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
