/** A link to a server of this machine that is as slow as a test says: no more waits on it than a chunk. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { cleanUp, type Ending } from './cleanup.ts';

/** One piece of what a client sends. */
export interface Piece {
  readonly bytes: number;
  send(): void;
  /** Whether the server has answered since the client's last chunk. */
  isAnswered(): boolean;
}

/** Resolves with a port of its own. `pass` sends a piece of at most `pieceBytes`; the next one waits for it. */
export async function startSlowLink(
  ending: Ending,
  port: number,
  pieceBytes: number,
  pass: (piece: Piece) => Promise<void>,
): Promise<number> {
  const forward = async (client: Socket, upstream: Socket): Promise<void> => {
    let answered = false;
    upstream.on('data', () => {
      answered = true;
    });
    for await (const chunk of client) {
      if (!(chunk instanceof Buffer)) throw new TypeError('A socket is read as bytes');
      answered = false;
      for (let at = 0; at < chunk.length; at += pieceBytes) {
        const bytes = chunk.subarray(at, at + pieceBytes);
        await pass({ bytes: bytes.length, send: () => void upstream.write(bytes), isAnswered: () => answered });
      }
    }
    upstream.end();
  };
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1');
    const end = (): void => {
      client.destroy();
      upstream.destroy();
    };
    cleanUp(ending, end);
    for (const socket of [client, upstream]) socket.on('error', end);
    upstream.pipe(client);
    forward(client, upstream).catch(end);
  });
  cleanUp(ending, () => void server.close());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}
