/** A port of the loopback interface that is free, for a server that must be found there again after a restart. */
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

const PORT_MIN = 15_000;
const PORT_MAX = 32_000;

/**
 * Below those that systems give to outgoing connections (32,768 on Linux, 49,152 elsewhere): one of theirs may be taken
 * by any connection while its server is being started again.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    const server = createServer();
    const bound = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!bound) continue;
    server.close();
    await once(server, 'close');
    return port;
  }
}
