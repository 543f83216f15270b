/** A collector of OpenTelemetry on the loopback interface, which keeps the spans that servers send it as JSON. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { cleanUp, type Ending } from './cleanup.ts';

export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Absent, or empty, of the first span of a trace. */
  readonly parentSpanId?: string;
  readonly links?: readonly { readonly traceId: string; readonly spanId: string }[];
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
  readonly status: { readonly code?: number };
}

export interface TraceCollector {
  /** Settings for a server that sends its traces here, soon after they end. */
  readonly env: Readonly<Record<string, string>>;
  readonly spans: readonly CollectedSpan[];
  /** The bodies as received. */
  readonly bodies: readonly string[];
  /** Those of the latest request. */
  readonly headers: () => IncomingHttpHeaders;
  /** The status of the next answers; 200 at first. */
  status: number;
  /** Resolves with what `find` returns of the spans, once that is not undefined; throws after half a minute. */
  until<Found>(find: (spans: readonly CollectedSpan[]) => Found | undefined): Promise<Found>;
}

const SPAN_MS = 30_000;

interface Export {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly CollectedSpan[] }[];
  }[];
}

export async function startTraceCollector(context: Ending): Promise<TraceCollector> {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  let headers: IncomingHttpHeaders = {};
  const server = createServer((request, response) => {
    text(request).then(
      (body) => {
        headers = request.headers;
        if (request.url !== '/v1/traces') collector.status = 404;
        response.writeHead(collector.status, { 'Content-Type': 'application/json' }).end('{}');
        if (collector.status !== 200) return;
        bodies.push(body);
        const { resourceSpans } = JSON.parse(body) as Export;
        for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
      },
      () => response.destroy(),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanUp(context, async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  const collector: TraceCollector = {
    env: {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      OTEL_BSP_SCHEDULE_DELAY: '50',
    },
    spans,
    bodies,
    headers: () => headers,
    status: 200,
    async until(find) {
      const deadline = Date.now() + SPAN_MS;
      for (;;) {
        const found = find(spans);
        if (found !== undefined) return found;
        if (Date.now() > deadline) throw new Error(`The spans are not there: ${JSON.stringify(spans, null, 1)}`);
        await sleep(20);
      }
    },
  };
  return collector;
}

/** Returns the value of an attribute. */
export function attributeOf(span: CollectedSpan, key: string): unknown {
  const value = span.attributes.find((attribute) => attribute.key === key)?.value;
  return value === undefined ? undefined : Object.values(value)[0];
}

/** Returns the names of the spans from the first of the trace down to this one. */
export function pathOf(spans: readonly CollectedSpan[], span: CollectedSpan): readonly string[] {
  const parent = spans.find(({ spanId }) => spanId === span.parentSpanId);
  return [...(parent === undefined ? [] : pathOf(spans, parent)), span.name];
}
