/**
 * The failures that can occur while a model is written, classified by what to do about them.
 *
 * Invariants: an outage is never classified as a poison event. Otherwise an outage of a minute would park every
 * stream that has received an event since.
 */
import type { StreamName } from '../../core/kernel/envelope.ts';
import { EventStoreError } from '../../core/ports/event-store.ts';

/** Another process wrote or replaced this generation: what this process knows about it is out of date. */
export class CheckpointMoved extends Error {
  override readonly name = 'CheckpointMoved';
}

/** The model cannot continue until an operator acts. */
export class ProjectionHalted extends Error {
  override readonly name = 'ProjectionHalted';
}

/**
 * When a parked stream is retried. `soon`: its work is only too long for the other streams to wait. `later`: its fault
 * may pass without help. `on-request`: an operator must request the retry.
 */
export type Retry = 'soon' | 'later' | 'on-request';

/** A failure that concerns the events of one stream and of no other. */
export class StreamFault extends Error {
  override readonly name = 'StreamFault';
  readonly stream: StreamName;
  readonly retry: Retry;
  /**
   * True if one stream's work exceeded a limit. Any number of streams may do so while nothing is wrong with the model.
   */
  readonly beyondBounds: boolean;
  constructor(
    stream: StreamName,
    retry: Retry,
    message: string,
    options: { readonly cause?: unknown; readonly beyondBounds?: boolean } = {},
  ) {
    super(message, options);
    this.stream = stream;
    this.retry = retry;
    this.beyondBounds = options.beyondBounds ?? false;
  }
}

/** Why a stream is parked, as its rows in `parked` store it. */
export interface ParkingReason {
  readonly fault: string;
  readonly retry: Retry;
  readonly beyondBounds: boolean;
}

export function parkingReason(fault: unknown): ParkingReason {
  const { retry, beyondBounds } =
    fault instanceof StreamFault ? fault : { retry: 'on-request' as const, beyondBounds: false };
  return { fault: describeFault(fault), retry, beyondBounds };
}

/**
 * - `outage`: the database or the log is unreachable, overloaded or restarting: the same work will succeed later.
 * - `stale`: the tables or the checkpoint differ from what this process knows: it must read them again.
 * - `halt`: an operator must act.
 * - `fault`: the work itself fails, so one of its events is the likely cause.
 */
export type FaultKind = 'outage' | 'stale' | 'halt' | 'fault';

/** PostgreSQL, appendix A: connection exceptions, insufficient resources, operator intervention, lock timeouts. */
const OUTAGE_STATES = /^(08|53|57P0|57014|40001|40P01|55P03|25P03|25P04)/;
/** undefined_table and invalid_schema_name: another process dropped what this one writes. */
const STALE_STATES = new Set(['42P01', '3F000']);
const SOCKET_FAULTS = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOENT', 'ENOTFOUND', 'EAI_AGAIN']);

/**
 * The driver sets no code if the connection ends during a statement or has ended before, nor if none came free in time:
 * then others are using all of them.
 */
const CODELESS_OUTAGES =
  /connection (terminated|ended)|client was closed|not queryable|timeout exceeded when trying to connect|query read timeout|timeout expired/i;

export function faultKind(error: unknown): FaultKind {
  if (error instanceof CheckpointMoved) return 'stale';
  if (error instanceof ProjectionHalted) return 'halt';
  if (error instanceof EventStoreError) return error.code === 'log-diverged' ? 'halt' : 'outage';
  const code = codeOf(error);
  if (code !== null && OUTAGE_STATES.test(code)) return 'outage';
  if (code !== null && STALE_STATES.has(code)) return 'stale';
  if (code !== null && SOCKET_FAULTS.has(code)) return 'outage';
  const ended = error instanceof Error && CODELESS_OUTAGES.test(error.message);
  return ended ? 'outage' : 'fault';
}

export function codeOf(error: unknown): string | null {
  if (typeof error !== 'object' || error === null || !('code' in error)) return null;
  return typeof error.code === 'string' ? error.code : null;
}

/** Returns one line for operators: the error's name, its code if it has one, and its message. */
export function describeFault(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = codeOf(error);
  return `${code === null ? error.name : `${error.name} ${code}`}: ${error.message}`.slice(0, 1_000);
}
