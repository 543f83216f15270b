/**
 * How answers begin and end: their heads, and those outside the Git protocol, which are plain text that git shows after
 * `remote:`.
 *
 * Invariants: every answer to an admitted or refused request names the request's id and may be cached by nobody.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { TLSSocket } from 'node:tls';
import type { CutCode } from '../../core/git/wire/command-list.ts';
import type { Denial } from '../front-door/admission.ts';
import type { RateRefusal } from '../front-door/callers.ts';

/** Why a request is refused, for the metrics and the log. `request-not-valid` stands for every other reason. */
export type GitHttpErrorCode = Denial['denied'] | RateRefusal['exceeded'] | CutCode | 'request-not-valid';

/** Ends the request with an answer outside the protocol: its status, the message for the user, and its headers. */
export class GitHttpError extends Error {
  override readonly name = 'GitHttpError';
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly code: GitHttpErrorCode;
  constructor(
    status: number,
    message: string,
    headers: Readonly<Record<string, string>> = {},
    code: GitHttpErrorCode = 'request-not-valid',
  ) {
    super(message);
    this.status = status;
    this.headers = headers;
    this.code = code;
  }
}

/** No proxy may cache an answer of the Git endpoints; git-http-backend(1) sends the same headers. */
const NO_CACHE = {
  'Cache-Control': 'no-cache, max-age=0, must-revalidate',
  Expires: 'Fri, 01 Jan 1980 00:00:00 GMT',
  Pragma: 'no-cache',
} as const;
const NO_CACHE_LIST = Object.entries(NO_CACHE).flat();

const SHARED_PART_BYTES = 1024 * 1024;
/** A connection that encrypts copies what is written to it. */
const ENCRYPTED_PART_BYTES = 256 * 1024;

/** A response, and the id of the request that it answers. */
export interface Answering {
  readonly response: ServerResponse;
  readonly requestId: string;
}

/** `headers` are names and values in turn: Node writes one list about a microsecond faster than headers set by name. */
export function writeHead({ response, requestId }: Answering, status: number, headers: readonly string[]): void {
  response.writeHead(status, ['X-Request-Id', requestId, ...NO_CACHE_LIST, ...headers]);
}

export function sendError(answering: Answering, error: GitHttpError): void {
  const body = Buffer.from(`${error.message}\n`, 'utf8');
  const type = ['Content-Type', 'text/plain; charset=utf-8'];
  const length = ['Content-Length', String(body.length)];
  writeHead(answering, error.status, [...Object.entries(error.headers).flat(), ...type, ...length]);
  answering.response.end(body);
}

export function sendBytes(answering: Answering, contentType: string, bytes: Uint8Array): void {
  writeHead(answering, 200, ['Content-Type', contentType, 'Content-Length', String(bytes.length)]);
  answering.response.end(bytes);
}

/**
 * How long a connection stays open behind an answer whose client still sends. Internal: the client has its answer by
 * then, and a later end would only drop more of what it sends.
 */
const EARLY_ANSWER_SPAN_MS = 5_000;

/**
 * Sends an answer to a client that still sends, and ends the connection. What arrives is dropped for a moment: a
 * connection that is closed before its bytes are read is reset, and the client may lose the answer by that. git sends
 * no more once it has read the whole of such an answer.
 */
export async function sendEarly(
  answering: Answering & { readonly request: IncomingMessage },
  contentType: string,
  bytes: Uint8Array,
): Promise<void> {
  const { request, response } = answering;
  const length = ['Content-Length', String(bytes.length)];
  writeHead(answering, 200, ['Content-Type', contentType, ...length, 'Connection', 'close']);
  response.write(bytes);
  const { promise: read, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, EARLY_ANSWER_SPAN_MS);
  response.once('close', resolve);
  request.once('end', resolve);
  request.resume();
  await read;
  clearTimeout(timer);
  response.end();
}

/**
 * Sends bytes that other answers share, and resolves when the connection needs them no more. They go in parts: one that
 * breaks counts little that was not sent, and one that encrypts holds no copy of all of them.
 */
export async function sendShared(
  answering: Answering,
  contentType: string,
  bytes: Uint8Array,
  onSent: (bytes: number) => void,
): Promise<void> {
  const { response } = answering;
  if (response.destroyed) return;
  const closed = new Promise<void>((resolve) => response.once('close', resolve));
  writeHead(answering, 200, ['Content-Type', contentType, 'Content-Length', String(bytes.length)]);
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
