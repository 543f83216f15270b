/**
 * What failures of EventStoreDB's client mean.
 *
 * Must stay true: the client throws its own classes, raw gRPC errors (the first call of an outage does) and plain
 * Errors (discovery); whatever is not known to be a refusal counts as an outage, during which an append may or may
 * not have happened.
 */
import { ErrorType, isCommandError } from '@eventstore/db-client';

export type Failure =
  /** It may pass by itself: try again. */
  | 'outage'
  /** The server knows what was asked and will not do it. */
  | 'refused'
  /** Anything else is a fault in a program. */
  | 'other';

/** A call got no answer in its time, or its client was given up meanwhile. */
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
  if (isCommandError(error)) return REFUSALS.has(typeOf(error)) ? 'refused' : 'outage';
  if (isRawGrpcError(error)) return REFUSING_CODES.has(error.code) ? 'refused' : 'outage';
  return error.message.startsWith('Failed to discover') || 'syscall' in error ? 'outage' : 'other';
}

/** Whether the client's own class is missing: what it keeps of such a failure can be wrong for ever. */
export function isRaw(error: unknown): boolean {
  return !(error instanceof Error) || !isCommandError(error);
}

function isRawGrpcError(error: Error): error is Error & { readonly code: number } {
  return 'code' in error && typeof error.code === 'number';
}

/** `isCommandError` narrows to a union whose members all have a type; a later class might not. */
function typeOf(error: Error): unknown {
  return 'type' in error ? error.type : undefined;
}
