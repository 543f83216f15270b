/** A port of the loopback interface that is free, for a server that must be found there again after a restart. */
import { randomInt } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { createServer } from 'node:net';

const PORT_MIN = 15_000;
const PORT_MAX = 32_000;

/**
 * Below those that systems give to outgoing connections (32,768 on Linux, 49,152 elsewhere): one of theirs may be taken
 * by any connection while its server is being started again. No other test is given it until this process ends.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if ((await reserve(port)) && (await isFree(port))) return port;
  }
}

/** Held by the UDP port of the same number, which nothing here speaks on: a server that is not up yet holds nothing. */
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
