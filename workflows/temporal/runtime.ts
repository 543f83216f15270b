/**
 * The part of the SDK that a process has only once: its threads, and its log output.
 *
 * Invariants: it writes to this program's log only, warnings and errors, in chosen fields. It handles no process
 * signals and sends no telemetry.
 */
import type { Logger, LogLevel, LogMetadata } from '@temporalio/common';
import { Runtime } from '@temporalio/worker';
import type { Log } from '../../core/ports/log.ts';

/** The fields of the SDK's log entries that are kept. */
const FIELDS = ['workflowId', 'activityType', 'attempt', 'taskQueue', 'sdkComponent'] as const;

let current: Log | null = null;

/** Makes the SDK write to this log from now on. A process has one runtime, so the log of the last call counts. */
export function useRuntime(log: Log): void {
  const first = current === null;
  current = log;
  if (!first) return;
  Runtime.install({
    logger: sdkLogger,
    telemetryOptions: { logging: { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } },
    workerHeartbeatInterval: 0,
    shutdownSignals: [],
  });
}

function write(level: LogLevel, message: string, meta: LogMetadata = {}): void {
  if (level !== 'WARN' && level !== 'ERROR') return;
  const fields = Object.fromEntries(FIELDS.flatMap((name) => (name in meta ? [[name, fieldOf(meta, name)]] : [])));
  const error = fieldOf(meta, 'error');
  const all = error === undefined ? fields : { ...fields, err: error };
  if (level === 'WARN') current?.warn(all, message);
  else current?.error(all, message);
}

function fieldOf(meta: LogMetadata, name: string): unknown {
  return meta[name];
}

/** The logger of the SDK, at run time and while it bundles workflow code. */
export const sdkLogger: Logger = {
  log: write,
  trace: (message, meta) => write('TRACE', message, meta),
  debug: (message, meta) => write('DEBUG', message, meta),
  info: (message, meta) => write('INFO', message, meta),
  warn: (message, meta) => write('WARN', message, meta),
  error: (message, meta) => write('ERROR', message, meta),
};
