/**
 * The REST answers to thrown errors.
 *
 * Invariants: no answer repeats the error's message.
 */
import type { Socket } from 'node:net';
import type { FastifyError, FastifyRequest } from 'fastify';
import { ReaderTooSlow } from '../../core/kernel/reader-too-slow.ts';
import { BodyNotHeld } from '../front-door/body-budget.ts';
import { isOfLeaving } from '../front-door/closed-signal.ts';
import { type FailedRequest, type FaultReports, logFault } from '../front-door/fault-log.ts';
import { NO_ROOM_FOR_READER } from '../front-door/texts/denials.ts';
import { type Outage, outageOf } from '../front-door/texts/outages.ts';
import { bodyRefusalAnswer } from './denials.ts';
import { type Answer, problem, unavailable } from './http/answer.ts';
import { BodyRefused } from './http/json-body.ts';

export const JSON_ONLY = 'The content type of a body is application/json';

/** Returns the answer to a refused body, an answer without room, an outage or a bug; logs the last two. */
export function faultAnswer(reports: FaultReports, error: FastifyError, request: FastifyRequest): Answer {
  if (error instanceof BodyRefused) return error.answer;
  if (error instanceof BodyNotHeld) return bodyRefusalAnswer(error.refusal);
  if (error instanceof ReaderTooSlow) {
    return problem(429, NO_ROOM_FOR_READER.text, { 'retry-after': String(NO_ROOM_FOR_READER.waitSeconds) });
  }
  const outage = outageOf(error);
  if (outage !== null) {
    logFault(reports, error, failed(request, outage.status));
    return outageAnswer(outage);
  }
  switch (error.code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return problem(413, `The body is larger than ${request.routeOptions.bodyLimit} bytes`);
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return problem(400, JSON_ONLY);
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return problem(400, 'The body is not as long as its Content-Length says');
  }
  // The client closed the connection, so nobody reads this answer.
  if (isOfLeaving(error, request.raw)) return problem(400, 'The request ended early');
  logFault(reports, error, failed(request, 500));
  return problem(500, `Internal error. The request id is ${request.id}`);
}

function outageAnswer(outage: Outage): Answer {
  const { message } = outage;
  return outage.status === 503 ? unavailable(message, outage.retryAfterSeconds) : problem(500, message);
}

function failed({ id: requestId, routeOptions }: FastifyRequest, status: number): FailedRequest {
  return { requestId, operation: routeOptions.config.route?.operationId ?? null, status };
}

interface ClientError extends Error {
  readonly code?: string;
}

/** Answers a request that node:http cannot parse, in the shape of docs/interface.md, and closes the connection. */
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
