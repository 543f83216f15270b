/** What each part of the server is composed with. */
import type { Logger } from 'pino';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { type Closer, closer } from './closer.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import type { Settings } from './settings.ts';
import { openTracing, type ServerTracing } from './tracing.ts';

export interface Composing {
  readonly settings: Settings;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracing: ServerTracing;
  /** Reports a failure that ends nothing: `what` names it in the log and in the metric of faults. */
  readonly onFault: (what: string, cause: unknown) => void;
  /** Counts a request that found that the log lacks, or has changed, what was read of it. */
  readonly onDiverged: () => void;
  /** The open parts. A part adds what closes it; `close` closes them in the reverse order of opening. */
  readonly parts: Closer;
}

/** Whether the log lacks what this process knows of it. */
function isDivergence(what: string, cause: unknown): boolean {
  return what === 'log-went-back' || (cause instanceof EventStoreError && cause.code === 'log-diverged');
}

export async function startComposing(settings: Settings, log: Logger): Promise<Composing> {
  const tracing = await openTracing(settings, log);
  const parts = closer();
  parts.add(tracing.close);
  const metrics = createMetrics();
  const onFault = (what: string, cause: unknown): void => {
    metrics.fault(what);
    if (isDivergence(what, cause)) metrics.logDiverged();
    log.error({ err: cause, what }, 'Recovered from an error');
  };
  const onDiverged = (): void => {
    metrics.fault('log-diverged');
    metrics.logDiverged();
  };
  return { settings, log, metrics, tracing, onFault, onDiverged, parts };
}
