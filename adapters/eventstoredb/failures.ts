/**
 * Classifies the errors of EventStoreDB's client.
 *
 * Invariants: the client throws errors of its own classes, raw gRPC errors (by the first call of an outage) and
 * plain Errors (by discovery); any of them that is not known to be a refusal counts as an outage, during which an
 * append may or may not have landed.
 */
import { ErrorType, isCommandError } from '@eventstore/db-client';

export type Failure =
  /** A retry may succeed. */
  | 'outage'
  /** The server understood the request and refuses it. */
  | 'refused'
  /** An error in a program, or one that is no error of the client. */
  | 'other';

/** A call got no answer in time, or its client was given up before that. */
export class NoAnswerError extends Error {
  override readonly name = 'NoAnswerError';
}

const REFUSALS = new Set<unknown>([
  ErrorType.ACCESS_DENIED,
  ErrorType.STREAM_DELETED,
  ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED,
  ErrorType.WRONG_EXPECTED_VERSION,
  ErrorType.UNSUPPORTED,
]);
/** gRPC's INVALID_ARGUMENT, PERMISSION_DENIED, FAILED_PRECONDITION, UNIMPLEMENTED, UNAUTHENTICATED (statuscodes). */
const REFUSING_CODES = new Set([3, 7, 9, 12, 16]);

/** Classifies what a call threw. */
export function failureOf(error: unknown): Failure {
  if (error instanceof NoAnswerError) return 'outage';
  if (!(error instanceof Error)) return 'other';
  if (isCommandError(error)) {
    const refuses =
      typeOf(error) === ErrorType.UNKNOWN ? REFUSING_CODES.has(codeOf(error)) : REFUSALS.has(typeOf(error));
    return refuses ? 'refused' : 'outage';
  }
  if (isRawGrpcError(error)) return REFUSING_CODES.has(error.code) ? 'refused' : 'outage';
  return error.message.startsWith('Failed to discover') || 'syscall' in error ? 'outage' : 'other';
}

/** gRPC's status codes (statuscodes). */
const UNAUTHENTICATED = 16;
const PERMISSION_DENIED = 7;

/**
 * Says what the operator must change so that the server no longer refuses; holds no secret. `right` is what the call
 * needs the right to do. Null when it is no matter of credentials or rights.
 */
export function refusalOf(error: unknown, right: string): string | null {
  const code = codeOf(error);
  if (code === UNAUTHENTICATED) {
    return 'EventStoreDB refuses the user or the password of STRATA_EVENTSTORE_URL, or the address names none';
  }
  const isDenied = code === PERMISSION_DENIED || (error instanceof Error && typeOf(error) === ErrorType.ACCESS_DENIED);
  return isDenied ? `EventStoreDB denies the user of STRATA_EVENTSTORE_URL the right to ${right}` : null;
}

/** The gRPC code of a raw error, or of one that the client has no class for. */
function codeOf(error: unknown): number {
  return error instanceof Error && isRawGrpcError(error) ? error.code : 0;
}

function isRawGrpcError(error: Error): error is Error & { readonly code: number } {
  return 'code' in error && typeof error.code === 'number';
}

/** The type of a client's error. `isCommandError` promises one, but a later class might have none. */
function typeOf(error: Error): unknown {
  return 'type' in error ? error.type : undefined;
}
