/** A receiver of webhooks on the loopback interface: it answers every delivery with the status of its choice. */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { Server } from 'node:net';

export interface Certificate {
  /** PEM. */
  readonly cert: string;
  readonly key: string;
}

export interface Receiver {
  readonly port: number;
  close(): void;
}

/** Port 0 takes any free port. `statusOf` gets the path of the delivery. */
export async function startReceiver(
  { cert, key }: Certificate,
  port: number,
  statusOf: (path: string) => number = () => 204,
): Promise<Receiver> {
  const receiver = createServer({ cert, key }, (request, response) => {
    const status = statusOf(request.url ?? '/');
    request.resume().on('end', () => {
      response.writeHead(status).end(status === 204 ? undefined : '{"error": "the queue is full, try later"}');
    });
  });
  receiver.listen(port, '127.0.0.1');
  await once(receiver, 'listening');
  return {
    port: portOf(receiver),
    close: () => {
      receiver.close();
      // They would keep the process from ending.
      receiver.closeAllConnections();
    },
  };
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('The receiver listens on no port');
  return address.port;
}
