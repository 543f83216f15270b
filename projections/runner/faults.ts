/**
 * What can go wrong while a model is written, sorted by what to do about it.
 *
 * Must stay true: an outage is never taken for a poison event, or an outage of a minute would set every
 * stream aside that moved in it.
 */
import type { StreamName } from '../../core/kernel/envelope.ts';
import { EventStoreError } from '../../core/ports/event-store.ts';

/** Somebody else wrote this generation, or replaced it: what this process believes of it is void. */
export class CheckpointMoved extends Error {
  override readonly name = 'CheckpointMoved';
}

/** The model cannot go on without an operator. */
export class ProjectionHalted extends Error {
  override readonly name = 'ProjectionHalted';
}

/**
 * When a parked stream is tried again: `soon`, since it only takes too long for the others to wait; `later`, since
 * its fault may pass by itself; `asked`, when an operator does.
 */
export type Retry = 'soon' | 'later' | 'asked';

/** What a model cannot do with one stream's events, and no other's. */
export class StreamFault extends Error {
  override readonly name = 'StreamFault';
  readonly stream: StreamName;
  readonly retry: Retry;
  constructor(stream: StreamName, retry: Retry, message: string, options?: { cause?: unknown }) {
    super(message, options);
    this.stream = stream;
    this.retry = retry;
  }
}

/**
 * - `outage`: the database or the log is away, overloaded or restarting: the same work will succeed later.
 * - `void`: the tables or the checkpoint are not what this process believes: look at them anew.
 * - `halt`: an operator must act.
 * - `fault`: the work itself fails, so probably one of its events is the cause.
 */
export type FaultKind = 'outage' | 'void' | 'halt' | 'fault';

/** PostgreSQL, appendix A: connection exceptions, insufficient resources, operator intervention, lock timeouts. */
const OUTAGE_STATES = /^(08|53|57P0|57014|40001|40P01|55P03|25P03|25P04)/;
/** undefined_table and invalid_schema_name: somebody dropped what was being written. */
const VOID_STATES = new Set(['42P01', '3F000']);
const SOCKET_FAULTS = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN']);

export function faultKind(error: unknown): FaultKind {
  if (error instanceof CheckpointMoved) return 'void';
  if (error instanceof ProjectionHalted) return 'halt';
  if (error instanceof EventStoreError) return error.code === 'log-diverged' ? 'halt' : 'outage';
  const code = codeOf(error);
  if (code !== null && OUTAGE_STATES.test(code)) return 'outage';
  if (code !== null && VOID_STATES.has(code)) return 'void';
  if (code !== null && SOCKET_FAULTS.has(code)) return 'outage';
  // The driver gives no code when the connection ends under a statement, or is already gone.
  const ended =
    error instanceof Error && /connection (terminated|ended)|client was closed|not queryable/i.test(error.message);
  return ended ? 'outage' : 'fault';
}

export function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}

/** One line for operators: a code or name, and the message. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  return `${code === null ? error.name : `${error.name} ${code}`}: ${error.message}`.slice(0, 1_000);
}
