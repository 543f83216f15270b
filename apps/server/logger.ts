/**
 * The server's log: JSON lines by pino, on standard output by default. On a terminal terminal-log.ts formats them.
 *
 * Invariants: the code names each field that it logs, instead of filtering out others. Requests are logged by id,
 * operation and status, errors by class, code, message and stack. Headers, bodies, URLs with queries and secrets are
 * never logged.
 */
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Settings } from './settings.ts';

interface LoggedError {
  readonly type: string;
  readonly code: string | undefined;
  readonly message: string;
  readonly stack: string | undefined;
  readonly cause: LoggedError | undefined;
}

/** Causes nested deeper than this are not logged. Internal: only the operator reads the log. */
const CAUSES_MAX = 5;

function loggedError(error: unknown, depth = 0): LoggedError | undefined {
  if (error === undefined || depth >= CAUSES_MAX) return undefined;
  if (!(error instanceof Error)) {
    return { type: typeof error, code: undefined, message: 'not an Error', stack: undefined, cause: undefined };
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  const { name, message, stack, cause } = error;
  return { type: name, code, message, stack, cause: loggedError(cause, depth + 1) };
}

export function createLogger(level: Settings['logLevel'], destination: DestinationStream | null = null): Logger {
  const options = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: {
      err: (error: unknown) => loggedError(error),
      // A request or response passed to the logger by mistake is not logged.
      req: () => undefined,
      res: () => undefined,
    },
  };
  return destination === null ? pino(options) : pino(options, destination);
}
