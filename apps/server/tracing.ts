/**
 * Traces of the server, if its settings name a collector: they begin with a request, and end when it is reported.
 *
 * Invariants: without a collector the SDK is not loaded, and no request passes a line of this. A stranger's
 * `traceparent` never decides whether a trace is sampled: only peers of STRATA_TRUSTED_PROXIES do.
 */
import type { IncomingMessage, RequestListener } from 'node:http';
import type { Logger } from 'pino';
import type { FinishedTrace } from '../../adapters/opentelemetry/tracing.ts';
import type { Tracing } from '../../core/ports/tracing.ts';
import packageJson from '../../package.json' with { type: 'json' };
import type { Settings } from './settings.ts';
import { createAddressList, peerOf } from './source-address.ts';

export interface ServerTracing {
  /** Null: nothing is traced. */
  readonly port: Tracing | null;
  /** Begins a trace with each request that the listener gets. */
  traced(listener: RequestListener): RequestListener;
  /** Ends the trace of a request. */
  finished(request: IncomingMessage, finished: FinishedTrace): void;
  close(): Promise<void>;
}

const OFF: ServerTracing = {
  port: null,
  traced: (listener) => listener,
  finished: () => undefined,
  close: async () => undefined,
};

export async function openTracing(
  { tracing, trustedProxies }: Pick<Settings, 'tracing' | 'trustedProxies'>,
  log: Pick<Logger, 'info' | 'warn'>,
): Promise<ServerTracing> {
  if (!tracing) return OFF;
  const { createOpenTelemetryTracing } = await import('../../adapters/opentelemetry/tracing.ts');
  const port = createOpenTelemetryTracing({ version: packageJson.version, log });
  const isTrusted = createAddressList('STRATA_TRUSTED_PROXIES', trustedProxies);
  const ends = new WeakMap<IncomingMessage, (finished: FinishedTrace) => void>();
  return {
    port,
    traced: (listener) => (request, response) => {
      const { traceparent, tracestate } = request.headers;
      const traced = {
        method: request.method ?? '',
        traceparent: oneLine(traceparent),
        tracestate: oneLine(tracestate),
        isTrusted: isTrusted(peerOf(request)),
      };
      const end = port.request(traced, () => listener(request, response));
      ends.set(request, end);
    },
    finished(request, finished) {
      ends.get(request)?.(finished);
      ends.delete(request);
    },
    close: port.close,
  };
}

/** Node joins what is sent several times. */
function oneLine(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'object' ? header.join(',') : header;
}
