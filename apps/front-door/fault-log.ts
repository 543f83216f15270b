/**
 * Logs requests that failed.
 *
 * Invariants: a log line holds only ids, operations, statuses, codes and an error's stack. Anything in the stack
 * that looks like a secret of Strata is replaced.
 */
import { EventStoreError } from '../../core/ports/event-store.ts';
import type { FrontDoor } from './front-door.ts';

export interface FailedRequest {
  readonly requestId: string;
  /** Null when no route matched. */
  readonly operation: string | null;
  /** 500 and above. */
  readonly status: number;
}

/** What failed requests are reported to. */
export type FaultReports = Pick<FrontDoor, 'log' | 'onDiverged'>;

export function logFault(
  { log, onDiverged }: FaultReports,
  error: unknown,
  { requestId, operation, status }: FailedRequest,
): void {
  const fields = { requestId, operation, status, error: describe(error, CAUSES_MAX) };
  if (status === 500) log.error(fields, 'A request failed');
  else log.warn(fields, 'A request could not be answered now');
  if (error instanceof EventStoreError && error.code === 'log-diverged') onDiverged();
}

/** Causes of a fault that are logged. Internal: only the operator reads the log. */
const CAUSES_MAX = 3;

interface DescribedError {
  readonly name: string;
  readonly code: string | null;
  readonly stack: string;
  readonly cause: DescribedError | null;
}

function describe(error: unknown, causes: number): DescribedError | null {
  if (!(error instanceof Error)) return null;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  const cause = causes > 0 ? describe(error.cause, causes - 1) : null;
  return { name: error.name, code, stack: withoutSecrets(error.stack ?? error.message), cause };
}

/** Replaces Strata's secrets and the user information of URLs, which a library's message may repeat. */
export function withoutSecrets(text: string): string {
  return text.replaceAll(/(strata|whsec)_[0-9A-Za-z]+/g, '$1_…').replaceAll(/:\/\/[^\s/@]*@/g, '://…@');
}
