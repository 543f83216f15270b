/**
 * Translates errors of sockets and of TLS into the outcomes that the port names.
 *
 * Invariants: only error codes leave this file; an error's message may hold a host name or a header.
 */
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
