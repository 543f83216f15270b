/**
 * Translates errors of sockets, TLS and undici into the outcomes that the port names.
 *
 * Invariants: only error codes leave this file; an error's message may hold a host name or a header.
 */
import { errors } from 'undici';
import type { Exchange, OutgoingFailure } from '../../core/kernel/exchange.ts';

export type Failed = Extract<Exchange, { outcome: 'failed' }>;

export function failed(failure: OutgoingFailure, detail: string | null = null, status: number | null = null): Failed {
  return { outcome: 'failed', failure, status, detail };
}

const CODE = /^[A-Z][A-Z0-9_]{1,63}$/;

/** The code of an error, or of the first error of an AggregateError; null when it has none. */
export function codeOf(error: unknown): string | null {
  if (error instanceof AggregateError && error.errors.length > 0) return codeOf(error.errors[0]);
  if (!(error instanceof Error) || !('code' in error)) return null;
  return typeof error.code === 'string' && CODE.test(error.code) ? error.code : null;
}

/** The outcome of an exchange that undici ended with this error before a status and headers had arrived. */
export function lostExchange(error: Error): Failed {
  const code = codeOf(error);
  if (error instanceof errors.HeadersOverflowError) return failed('answer-headers-too-large', code);
  if (isMalformed(error)) return failed('answer-malformed', code);
  return failed(code?.startsWith('ERR_SSL_') === true ? 'tls-failed' : 'connection-lost', code);
}

/** undici's errors for a status of 100 and for an unrequested upgrade differ from a closed socket's by message only. */
const MALFORMED = new Set(['bad response', 'bad upgrade']);

function isMalformed(error: Error): boolean {
  if (error instanceof errors.SocketError) return MALFORMED.has(error.message);
  return error instanceof errors.HTTPParserError || error instanceof errors.ResponseContentLengthMismatchError;
}
