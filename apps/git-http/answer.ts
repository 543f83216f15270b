/** Answers outside the Git protocol: plain text, which git shows after `remote:`. */
import type { ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';

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

const SHARED_PART_BYTES = 1024 * 1024;
/** A connection that encrypts copies what is written to it. */
const ENCRYPTED_PART_BYTES = 256 * 1024;

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

/**
 * Sends bytes that other answers share, and resolves when the connection needs them no more. They go in parts: one that
 * breaks counts little that was not sent, and one that encrypts holds no copy of all of them.
 */
export async function sendShared(
  response: ServerResponse,
  contentType: string,
  bytes: Uint8Array,
  onSent: (bytes: number) => void,
): Promise<void> {
  if (response.destroyed) return;
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  response.writeHead(200, { ...NO_CACHE, 'Content-Type': contentType, 'Content-Length': bytes.length });
  const partBytes = response.socket instanceof TLSSocket ? ENCRYPTED_PART_BYTES : SHARED_PART_BYTES;
  let at = 0;
  for (; at + partBytes < bytes.length; at += partBytes) {
    onSent(partBytes);
    if (!(await write(response, bytes.subarray(at, at + partBytes)))) return;
  }
  onSent(bytes.length - at);
  response.end(bytes.subarray(at));
  await closed;
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

/** Resolves true as soon as the connection needs the bytes no more, and false if the client has closed it. */
export async function written(response: ServerResponse, bytes: Uint8Array): Promise<boolean> {
  if (response.destroyed) return false;
  return new Promise((resolve) => {
    const closed = (): void => resolve(false);
    response.once('close', closed);
    response.write(bytes, (error) => {
      response.off('close', closed);
      resolve(error === null || error === undefined);
    });
  });
}
