/** HTTP without a client library: sends requests exactly as written, also malformed ones. */
import { connect } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Sends the text as latin1 bytes and reads until the server closes the connection. */
export async function exchange(port: number, request: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  const chunks: Buffer[] = [];
  const ended = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('close', () => resolve());
    socket.on('error', (error: NodeJS.ErrnoException) => {
      // A server may close before it has read everything.
      if (error.code === 'ECONNRESET' || error.code === 'EPIPE') resolve();
      else reject(error);
    });
  });
  socket.write(typeof request === 'string' ? Buffer.from(request, 'latin1') : request);
  await ended;
  return Buffer.concat(chunks).toString('latin1');
}

/** Parses the first answer of an exchange. */
export function parseAnswer(text: string): RawAnswer {
  const end = text.indexOf('\r\n\r\n');
  const [statusLine = '', ...lines] = text.slice(0, end).split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(headers),
    body: text.slice(end + 4),
  };
}

/** Sends one request with `Connection: close`; its target and headers are sent exactly as passed. */
export async function rawRequest(
  port: number,
  request: {
    readonly method?: string;
    readonly target: string;
    readonly headers?: readonly string[];
    readonly body?: string;
  },
): Promise<RawAnswer> {
  const { method = 'GET', target, headers = [], body = '' } = request;
  const head = [`${method} ${target} HTTP/1.1`, 'Host: localhost', 'Connection: close', ...headers];
  return parseAnswer(await exchange(port, `${head.join('\r\n')}\r\n\r\n${body}`));
}
