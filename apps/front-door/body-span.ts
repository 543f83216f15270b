/** Ends a request whose body takes too long to arrive. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Exchange } from './admission.ts';

export const LATE_BODY_TEXT = 'The body took too long to arrive: send it without pauses';

/**
 * Calls `late` if the body is not there in time, and nothing was answered until then; the caller answers with 408 and
 * ends the connection.
 */
export function limitBodySpan({ request, response }: Exchange, spanMs: number, late: () => void): void {
  if (request.complete) return;
  const timer = setTimeout(late, spanMs).unref();
  const settle = (): void => clearTimeout(timer);
  request.once('close', settle);
  request.once('end', settle);
  // A request that is refused before its end has no end, and Node does not close it.
  response.once('close', settle);
}

/** Answers a request whose body is not read to its end, and ends its connection. */
export function answerLate(
  request: IncomingMessage,
  response: ServerResponse,
  { contentType, body }: { readonly contentType: string; readonly body: string },
): void {
  const end = (): void => void request.destroy();
  if (response.headersSent) {
    end();
    return;
  }
  response.once('finish', end);
  response.writeHead(408, { 'Content-Type': contentType, 'Cache-Control': 'no-store', Connection: 'close' }).end(body);
}
