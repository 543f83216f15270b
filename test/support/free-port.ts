/** A free port of the loopback interface, for a server that must be reachable at the same port after a restart. */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

const PORT_MIN = 15_000;
const PORT_MAX = 32_000;

/**
 * Reserves a port below those that the system assigns to outgoing connections (from 32,768 on Linux, 49,152 elsewhere).
 * Any connection could take one of those while the server restarts. No other test gets this port until this process
 * ends.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
}

/**
 * Reserves the number by binding the UDP port of the same number, which no server here uses. A TCP port is not bound
 * while its server is down.
 */
async function reserve(port: number): Promise<boolean> {
  const socket = createSocket('udp4').unref();
  const bound = await new Promise<boolean>((resolve) => {
    socket.once('error', () => resolve(false));
    socket.bind({ port, address: '127.0.0.1', exclusive: true }, () => resolve(true));
  });
  if (!bound) socket.close();
  return bound;
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const bound = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => resolve(true));
  });
  if (!bound) return false;
  server.close();
  await once(server, 'close');
  return true;
}
