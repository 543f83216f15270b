/**
 * Sends finished spans to the collector of the OTEL_ settings, by OTLP over HTTP.
 *
 * Invariants: a collector that does not answer costs one line of the log, not one for each batch, and no request: spans
 * wait in a bounded queue, beyond which they are lost. No line holds a header, an address or an answer.
 */
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, type SpanExporter, type SpanProcessor } from '@opentelemetry/sdk-trace-base';
import type { Log } from '../../core/ports/log.ts';

export function createExport(log: Pick<Log, 'info' | 'warn'>): SpanProcessor {
  return new BatchSpanProcessor(toldOnce(new OTLPTraceExporter(), log));
}

/** Tells the first failure, and the first success after one. */
function toldOnce(exporter: SpanExporter, log: Pick<Log, 'info' | 'warn'>): SpanExporter {
  let isFailing = false;
  return {
    export(spans, done) {
      exporter.export(spans, (result) => {
        const fails = result.code !== 0;
        if (fails && !isFailing)
          log.warn({ code: codeOf(result.error) }, 'The collector takes no traces: they are lost');
        if (!fails && isFailing) log.info({}, 'The collector takes traces again');
        isFailing = fails;
        done(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}

/** The message may hold what the collector answered. */
export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  const code = 'code' in error ? error.code : null;
  return typeof code === 'string' || typeof code === 'number' ? String(code) : error.name;
}
