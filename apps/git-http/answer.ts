/** Answers outside the Git protocol: plain text, which git shows after `remote:`. */
import type { ServerResponse } from 'node:http';

/** Ends the request with an error answer: its status, the message for the user, and the headers it needs. */
export class GitHttpError extends Error {
  override readonly name = 'GitHttpError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  constructor(status: number, message: string, headers: Readonly<Record<string, string>> = {}) {
    super(message);
    this.status = status;
    this.headers = headers;
  }
}

/** No proxy may cache an answer of the Git endpoints; git-http-backend(1) sends the same headers. */
export const NO_CACHE = {
  'Cache-Control': 'no-cache, max-age=0, must-revalidate',
  Expires: 'Fri, 01 Jan 1980 00:00:00 GMT',
  Pragma: 'no-cache',
} as const;

export function sendError(response: ServerResponse, error: GitHttpError): void {
  const body = Buffer.from(`${error.message}\n`, 'utf8');
  response.writeHead(error.status, {
    ...NO_CACHE,
    ...error.headers,
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': body.length,
  });
  response.end(body);
}

export function sendBytes(response: ServerResponse, contentType: string, bytes: Uint8Array): void {
  response.writeHead(200, { ...NO_CACHE, 'Content-Type': contentType, 'Content-Length': bytes.length });
  response.end(bytes);
}

/** Writes with back pressure. Resolves false if the client has closed the connection. */
export async function write(response: ServerResponse, bytes: Uint8Array): Promise<boolean> {
  if (response.destroyed) return false;
  if (response.write(bytes)) return true;
  return new Promise((resolve) => {
    const drained = (): void => settle(true);
    const closed = (): void => settle(false);
    const settle = (open: boolean): void => {
      response.off('drain', drained);
      response.off('close', closed);
      resolve(open);
    };
    response.on('drain', drained);
    response.on('close', closed);
  });
}
