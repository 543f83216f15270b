/**
 * What thrown errors answer, and what of them is logged.
 *
 * Must stay true: a log line holds ids, routes, statuses, codes and an error's own words with anything that
 * looks like one of our secrets struck out; an answer holds none of those words.
 */
import type { Socket } from 'node:net';
import type { FastifyError, FastifyRequest } from 'fastify';
import { JSON_BODY_BYTES_MAX } from '../../core/kernel/limits.ts';
import type { Log } from '../../core/ports/log.ts';
import { type Answer, problem } from './http/answer.ts';
import { BodyRefused } from './http/json-body.ts';
import { outageAnswer } from './outages.ts';

/** A refused body, an outage, or a bug. */
export function faultAnswer(log: Log, error: FastifyError, request: FastifyRequest): Answer {
  if (error instanceof BodyRefused) return error.answer;
  const outage = outageAnswer(error);
  if (outage !== null) {
    logFault(log, error, request, outage.status);
    return outage;
  }
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return problem(413, `The body is larger than ${JSON_BODY_BYTES_MAX} bytes`);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return problem(400, 'The content type of a body is application/json');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return problem(400, 'The body is not as long as its Content-Length says');
  }
  // The client went away or broke off its body: nobody will read this.
  if (request.raw.errored !== null) return problem(400, 'The request ended early');
  logFault(log, error, request, 500);
  return problem(500, `Internal error. The request id is ${request.id}`);
}

function logFault(log: Log, error: Error, request: FastifyRequest, status: number): void {
  const fields = {
    requestId: request.id,
    operation: request.routeOptions.config.route?.operationId ?? null,
    status,
    error: describe(error, CAUSES_MAX),
  };
  if (status === 500) log.error(fields, 'A request failed');
  else log.warn(fields, 'A request could not be answered now');
}

const CAUSES_MAX = 3;

interface DescribedError {
  readonly name: string;
  readonly code: string | null;
  readonly stack: string;
  readonly cause: DescribedError | null;
}

function describe(error: Error, causes: number): DescribedError {
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  const cause = error.cause instanceof Error && causes > 0 ? describe(error.cause, causes - 1) : null;
  return { name: error.name, code, stack: withoutSecrets(error.stack ?? error.message), cause };
}

/** Strikes out our secrets and the user information of URLs, wherever a library's words repeat them. */
export function withoutSecrets(text: string): string {
  return text.replaceAll(/(strata|whsec)_[0-9A-Za-z]+/g, '$1_…').replaceAll(/:\/\/[^\s/@]*@/g, '://…@');
}

interface ClientError extends Error {
  readonly code?: string;
}

/** Requests that node:http itself cannot read: an answer in our shape, and the end of the connection. */
export function answerUnreadable(error: ClientError, socket: Socket, requestId: string): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const [status, detail] = UNREADABLE[error.code ?? ''] ?? ['400 Bad Request', 'The request is not well-formed HTTP'];
  const body = JSON.stringify({ detail });
  const head = [
    `HTTP/1.1 ${status}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const UNREADABLE: Readonly<Record<string, readonly [string, string]>> = {
  HPE_HEADER_OVERFLOW: ['431 Request Header Fields Too Large', 'The headers of the request are too large'],
  ERR_HTTP_REQUEST_TIMEOUT: ['408 Request Timeout', 'The request took too long to arrive'],
};
