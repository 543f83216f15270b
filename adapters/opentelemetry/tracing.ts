/**
 * Traces by OpenTelemetry's SDK. Its own settings OTEL_* decide on sampling, names, limits and the collector.
 *
 * Invariants:
 * - only a trusted peer's `traceparent` is a parent, and with it its choice of sampling; anybody else's is a link;
 * - a request that is not sampled costs the choice alone: its parts are run without a span;
 * - spans are recorded for work under a request that is not over: what runs on behind it belongs to no trace;
 * - nothing is registered globally, so no library of the process adds to traces or sends them on.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Context,
  createTraceState,
  DiagLogLevel,
  diag,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { defaultResource, detectResources, envDetector, resourceFromAttributes } from '@opentelemetry/resources';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { LRUCache } from 'lru-cache';
import { countedCache } from '../../core/kernel/shown-caches.ts';
import type { Log } from '../../core/ports/log.ts';
import type { TracedPart, Tracing } from '../../core/ports/tracing.ts';
import { codeOf, createExport } from './exporter.ts';
import { parseTraceparent, traceparentOf } from './traceparent.ts';

type SpanAttribute =
  | 'append.events'
  | 'error.type'
  | 'http.request.method'
  | 'http.response.status_code'
  | 'projection.model'
  | 'push.outcome'
  | 'request.id';
type SpanAttributes = { readonly [Name in SpanAttribute]?: string | number };

const PROJECTION: TracedPart = 'projection';

/** Appends whose read models may still follow. Internal: the spans behind a forgotten one are left out. */
const APPENDS_REMEMBERED_MAX = 10_000;
/** How long a stop waits for the last spans. Internal: later ones are lost. */
const CLOSE_SPAN_MS = 3_000;

export interface TracedRequest {
  readonly method: string;
  readonly traceparent: string | undefined;
  readonly tracestate: string | undefined;
  /** Whether the peer may choose the trace, and its sampling. */
  readonly isTrusted: boolean;
}

export interface FinishedTrace {
  /** An operation, or the pattern of a route: there are few of them. */
  readonly name: string;
  readonly status: number;
  readonly requestId: string;
  /** What became of a push: `ok`, `refused` or `outage`. */
  readonly outcome?: string | undefined;
}

export interface OpenTelemetryTracing extends Tracing {
  /** Handles a request in its trace. Returns what ends it. */
  request(request: TracedRequest, handle: () => void): (finished: FinishedTrace) => void;
  close(): Promise<void>;
}

export interface OpenTelemetryOptions {
  /** The version of this program. */
  readonly version: string;
  readonly log: Pick<Log, 'info' | 'warn'>;
}

export function createOpenTelemetryTracing(about: OpenTelemetryOptions): OpenTelemetryTracing {
  const provider = openProvider(about);
  const tracer = provider.getTracer('strata', about.version);
  const current = new AsyncLocalStorage<Span>();
  const appends = countedCache(
    'traced_appends',
    'entries',
    new LRUCache<string, SpanContext>({ max: APPENDS_REMEMBERED_MAX }),
  );

  /** Null outside of a request under way that is sampled. */
  const begin = (name: TracedPart): Span | null => {
    const parent = current.getStore();
    if (parent?.isRecording() !== true) return null;
    return tracer.startSpan(name, {}, trace.setSpan(ROOT_CONTEXT, parent));
  };
  const within = <Result>(span: Span, work: () => Promise<Result>): Promise<Result> =>
    current.run(span, () => ended(span, work));

  return {
    part(name, work) {
      const span = begin(name);
      return span === null ? work() : within(span, work);
    },
    stream(name, bytes) {
      const parent = current.getStore();
      if (parent?.isRecording() !== true) return bytes;
      return endedStream(() => tracer.startSpan(name, {}, trace.setSpan(ROOT_CONTEXT, parent)), bytes);
    },
    append(events, work) {
      const span = begin('append');
      const last = events.at(-1);
      if (span === null || last === undefined) return work();
      // Before the append: a read model may have its events before the caller has the answer.
      appends.set(last.id, span.spanContext());
      span.setAttributes({ 'append.events': events.length } satisfies SpanAttributes);
      return within(span, work);
    },
    applied(model, events, durationMs) {
      const startTime = Date.now() - durationMs;
      for (const { id } of events) {
        const append = appends.get(id);
        if (append === undefined) continue;
        const attributes: SpanAttributes = { 'projection.model': model };
        const parent = trace.setSpanContext(ROOT_CONTEXT, append);
        tracer.startSpan(PROJECTION, { startTime, attributes }, parent).end();
      }
    },
    alone: (name, work) => within(tracer.startSpan(name, { kind: SpanKind.CLIENT }, ROOT_CONTEXT), work),
    traceparent() {
      const span = current.getStore();
      return span?.isRecording() === true ? traceparentOf(span.spanContext()) : null;
    },
    request(request, handle) {
      const { options, parent } = originOf(request);
      const span = tracer.startSpan(request.method, options, parent);
      current.run(span, handle);
      return (finished) => end(span, finished);
    },
    close: () =>
      Promise.race([provider.shutdown(), sleep(CLOSE_SPAN_MS, undefined, { ref: false })]).catch(() => undefined),
  };
}

/** The settings are read here, so here the SDK tells which of them it cannot use. */
function openProvider({ version, log }: OpenTelemetryOptions): BasicTracerProvider {
  const tell = (message: string): void => {
    const [setting] = SETTING.exec(message) ?? [];
    // The message holds the value, which is a secret in some settings.
    if (setting !== undefined) log.warn({ setting }, 'A setting of OpenTelemetry cannot be used: its default holds');
  };
  const ignore = (): void => undefined;
  const told = { error: tell, warn: tell, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(told, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  try {
    const named = resourceFromAttributes({ 'service.name': 'strata', 'service.version': version });
    const resource = defaultResource()
      .merge(named)
      .merge(detectResources({ detectors: [envDetector] }));
    return new BasicTracerProvider({ resource, spanProcessors: [createExport(log)] });
  } finally {
    diag.disable();
  }
}

const SETTING = /\bOTEL_[A-Z_]+/;

/** Returns a span's options and its parent. */
function originOf({ method, traceparent, tracestate, isTrusted }: TracedRequest): {
  readonly options: SpanOptions;
  readonly parent: Context;
} {
  const remote = traceparent === undefined ? null : parseTraceparent(traceparent);
  const attributes: SpanAttributes = { 'http.request.method': method };
  const options = { kind: SpanKind.SERVER, attributes };
  if (remote === null) return { options, parent: ROOT_CONTEXT };
  if (!isTrusted) return { options: { ...options, links: [{ context: remote }] }, parent: ROOT_CONTEXT };
  const trusted = tracestate === undefined ? remote : { ...remote, traceState: createTraceState(tracestate) };
  return { options, parent: trace.setSpanContext(ROOT_CONTEXT, trusted) };
}

function end(span: Span, { name, status, requestId, outcome }: FinishedTrace): void {
  span.updateName(name);
  const attributes: SpanAttributes = { 'http.response.status_code': status, 'request.id': requestId };
  span.setAttributes(outcome === undefined ? attributes : { ...attributes, 'push.outcome': outcome });
  if (status >= 500 || outcome === 'outage') span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

async function ended<Result>(span: Span, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

async function* endedStream(begin: () => Span, bytes: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
  const span = begin();
  try {
    yield* bytes;
  } catch (error) {
    fail(span, error);
    throw error;
  } finally {
    span.end();
  }
}

function fail(span: Span, error: unknown): void {
  span.setAttributes({ 'error.type': codeOf(error) } satisfies SpanAttributes);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
