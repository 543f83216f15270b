/**
 * The SDK's part that a process has once: its threads, and where it writes.
 *
 * Must stay true: it writes to our log only, warnings and errors, by chosen fields; it takes no signals of the process
 * and sends no telemetry.
 */
import type { Logger, LogLevel, LogMetadata } from '@temporalio/common';
import { Runtime } from '@temporalio/worker';
import type { Log } from '../../core/ports/log.ts';

/** Of what the SDK tells with a line. */
const FIELDS = ['workflowId', 'activityType', 'attempt', 'taskQueue', 'sdkComponent'] as const;

let current: Log | null = null;

/** Has the SDK write to this log from now on: the process has one, and so the last one given counts. */
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

/** What the SDK writes by, here and while it bundles. */
export const sdkLogger: Logger = {
  log: write,
  trace: (message, meta) => write('TRACE', message, meta),
  debug: (message, meta) => write('DEBUG', message, meta),
  info: (message, meta) => write('INFO', message, meta),
  warn: (message, meta) => write('WARN', message, meta),
  error: (message, meta) => write('ERROR', message, meta),
};
