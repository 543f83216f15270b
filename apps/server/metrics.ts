/**
 * The Prometheus metrics at /metrics, by prom-client.
 *
 * Invariants: what is measured costs nothing while nobody asks. A figure is read at the scrape, or counted where
 * something happens; no timer samples it.
 */
import { performance } from 'node:perf_hooks';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { AttemptOutcome } from '../../core/webhook-delivery/events.ts';
import type { ProjectionMetrics } from '../../projections/runner/runner.ts';
import type { FinishedRequest } from '../git-http/context.ts';
import { END_REASONS, type RunRecord, STRAY_KINDS, type StrayKind } from './run-record.ts';
import { ROLES, type Role } from './settings.ts';

export interface Metrics {
  gitFinished(finished: FinishedRequest): void;
  apiFinished(route: string, status: number, durationMs: number): void;
  siteFinished(route: string, status: number, durationMs: number): void;
  /** Applied events, parked streams and halts of the projections, by model. */
  readonly projections: ProjectionMetrics;
  /** Counts a fault that the server survived and that an operator must see. */
  fault(what: string): void;
  /** Counts that the log lacked what this process knew of it. */
  logDiverged(): void;
  /** Counts a removed layer or vault record that no event names. */
  swept(what: 'layer' | 'vault-record' | 'stream'): void;
  /** Counts a client that was disconnected since it read too slowly. */
  slowReader(): void;
  /** Shows how the processes before this one ended, and counts on from their stray failures. */
  runs(record: Pick<RunRecord, 'restarts' | 'lastEnd' | 'strays'>): void;
  /** Counts a failure that nobody caught. */
  stray(kind: StrayKind): void;
  /** Shows 0 as the time of the last success of a row of `PERIODIC`, until `succeeded` is called. */
  periodic(work: string): { succeeded(): void };
  /** Shows which version this process is, and on which Node it runs. */
  build(version: string, node: string): void;
  /** Sets the gauge of the roles that this process runs. */
  roles(running: readonly Role[]): void;
  /** Counts a recorded attempt at a webhook delivery. */
  readonly webhookAttempted: (outcome: AttemptOutcome, durationMs: number) => void;
  /** Counts a workflow step that is done, or that failed and is tried again. */
  readonly workflowStep: (workflow: string, outcome: 'done' | 'failed') => void;
  /** Registers a gauge that `read` supplies at each scrape. A value that cannot be read is NaN. */
  gauge(name: string, help: string, read: () => number | Promise<number>): void;
  /** The same for several figures, which a label tells apart. */
  gauges(
    name: string,
    help: string,
    label: string,
    reads: Readonly<Record<string, () => number | Promise<number>>>,
  ): void;
  /** The same for figures that are read together, by their labels. */
  gaugesOf(name: string, help: string, label: string, read: () => Iterable<readonly [string, number]>): void;
  /** A sum that only grows. */
  total(name: string, help: string, read: () => number): void;
  /** The same for sums that are read together, by their labels. */
  totalsOf(name: string, help: string, label: string, read: () => Iterable<readonly [string, number]>): void;
  text(): Promise<string>;
  readonly contentType: string;
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60, 300];

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  processMetrics(registry, registers);
  return {
    ...requestMetrics(registers),
    projections: projectionMetrics(registers),
    ...upkeepMetrics(registers),
    ...workMetrics(registers),
    ...runMetrics(registers),
    ...periodicMetrics(registers),
    build: (version, node) => showBuild(registers, { version, node }),
    roles: (running) => setRoles(registers, running),
    gauge(name, help, read) {
      const collect = async (): Promise<void> => gauge.set(await figure(read));
      const gauge: Gauge = new Gauge({ name, help, registers, collect });
    },
    gauges(name, help, label, reads) {
      // All begin at the same time, so that they share what they read.
      const collect = async (): Promise<void> => {
        const show = async ([of, read]: (typeof entries)[number]) => gauge.set({ [label]: of }, await figure(read));
        await Promise.all(entries.map(show));
      };
      const entries = Object.entries(reads);
      const gauge: Gauge = new Gauge({ name, help, labelNames: [label], registers, collect });
    },
    gaugesOf(name, help, label, read) {
      const collect = (): void => {
        for (const [of, value] of read()) gauge.set({ [label]: of }, value);
      };
      const gauge: Gauge = new Gauge({ name, help, labelNames: [label], registers, collect });
    },
    totalsOf(name, help, label, read) {
      const collect = (): void => {
        totals.reset();
        for (const [of, value] of read()) totals.inc({ [label]: of }, value);
      };
      const totals: Counter = new Counter({ name, help, labelNames: [label], registers, collect });
    },
    total(name, help, read) {
      const collect = (): void => {
        total.reset();
        total.inc(read());
      };
      const total: Counter = new Counter({ name, help, registers, collect });
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
  };
}

type Registers = Registry[];

/** What prom-client samples the delay of the event loop for; at 10 ms that woke an idle process 100 times a second. */
const SAMPLED = ['min', 'max', 'mean', 'stddev', 'p50', 'p90', 'p99'];
/** No figure that is served depends on it. */
const SAMPLING_INTERVAL_MS = 60 * 60_000;

/** The figures of the process. How busy the event loop was since the last scrape stands in for its sampled delay. */
function processMetrics(registry: Registry, registers: Registers): void {
  collectDefaultMetrics({
    register: registry,
    prefix: 'strata_',
    eventLoopMonitoringPrecision: SAMPLING_INTERVAL_MS,
  });
  for (const figure of SAMPLED) registry.removeSingleMetric(`strata_nodejs_eventloop_lag_${figure}_seconds`);
  let last = performance.eventLoopUtilization();
  const busy: Gauge = new Gauge({
    name: 'strata_nodejs_eventloop_utilization',
    help: 'Share of the time since the last scrape in which the event loop was busy, from 0 to 1',
    registers,
    collect: () => {
      const now = performance.eventLoopUtilization();
      busy.set(performance.eventLoopUtilization(now, last).utilization);
      last = now;
    },
  });
}

function requestMetrics(registers: Registers): Pick<Metrics, 'gitFinished' | 'apiFinished' | 'siteFinished'> {
  const gitSeconds = new Histogram({
    name: 'strata_git_request_seconds',
    help: 'Git requests by operation and status, and pushes by outcome and class as well',
    labelNames: ['operation', 'status', 'outcome', 'class'],
    buckets: SECONDS,
    registers,
  });
  const gitBytes = new Counter({
    name: 'strata_git_bytes_total',
    help: 'Bytes of Git bodies by operation and direction',
    labelNames: ['operation', 'direction'],
    registers,
  });
  const apiSeconds = new Histogram({
    name: 'strata_api_request_seconds',
    help: 'REST requests by route and status',
    labelNames: ['route', 'status'],
    buckets: SECONDS,
    registers,
  });
  const siteSeconds = new Histogram({
    name: 'strata_website_request_seconds',
    help: 'Requests to the website by route and status',
    labelNames: ['route', 'status'],
    buckets: SECONDS,
    registers,
  });
  return {
    gitFinished({ operation, status, durationMs, sentBytes, receivedBytes, result }) {
      gitSeconds.observe({ operation, status, ...result }, durationMs / 1_000);
      if (sentBytes > 0) gitBytes.inc({ operation, direction: 'sent' }, sentBytes);
      if (receivedBytes > 0) gitBytes.inc({ operation, direction: 'received' }, receivedBytes);
    },
    apiFinished(route, status, durationMs) {
      apiSeconds.observe({ route, status }, durationMs / 1_000);
    },
    siteFinished(route, status, durationMs) {
      siteSeconds.observe({ route, status }, durationMs / 1_000);
    },
  };
}

function projectionMetrics(registers: Registers): ProjectionMetrics {
  const projected = new Counter({
    name: 'strata_projection_events_total',
    help: 'Events that the runner of this process applied, by model',
    labelNames: ['model'],
    registers,
  });
  const projectionPosition = new Gauge({
    name: 'strata_projection_position',
    help: 'Position of the log up to which a model was brought by this process',
    labelNames: ['model'],
    registers,
  });
  const parked = new Counter({
    name: 'strata_projection_parked_total',
    help: 'Streams set aside since an event of theirs could not be applied, by model',
    labelNames: ['model'],
    registers,
  });
  const halted = new Counter({
    name: 'strata_projection_halted_total',
    help: 'Times a model halted, by model',
    labelNames: ['model'],
    registers,
  });
  return {
    applied(model, position, events) {
      projected.inc({ model }, events);
      projectionPosition.set({ model }, Number(position));
    },
    parked: (model) => parked.inc({ model }),
    halted: (model) => halted.inc({ model }),
  };
}

function upkeepMetrics(registers: Registers): Pick<Metrics, 'fault' | 'logDiverged' | 'swept' | 'slowReader'> {
  const faults = new Counter({
    name: 'strata_faults_total',
    help: 'Errors that the server recovered from, by what failed',
    labelNames: ['what'],
    registers,
  });
  const diverged = new Counter({
    name: 'strata_log_diverged_total',
    help: 'Times that the log lacked, or had changed, what this process had read of it',
    registers,
  });
  const swept = new Counter({
    name: 'strata_swept_total',
    help: 'Things removed since no event names them, by what they were',
    labelNames: ['what'],
    registers,
  });
  const slowReaders = new Counter({
    name: 'strata_slow_readers_cut_total',
    help: 'Clients that were disconnected since they read an answer too slowly',
    registers,
  });
  return {
    fault: (what) => faults.inc({ what }),
    logDiverged: () => diverged.inc(),
    swept: (what) => swept.inc({ what }),
    slowReader: () => slowReaders.inc(),
  };
}

function runMetrics(registers: Registers): Pick<Metrics, 'runs' | 'stray'> {
  const strays = new Counter({
    name: 'strata_stray_failures_total',
    help: 'Failures that no code caught, by kind, those of earlier processes included: rejections of promises, exceptions',
    labelNames: ['kind'],
    registers,
  });
  return {
    stray: (kind) => strays.inc({ kind }),
    runs({ restarts, lastEnd, strays: earlier }) {
      for (const kind of STRAY_KINDS) strays.inc({ kind }, earlier[kind]);
      const help = 'Starts on this data directory after an end that nobody asked for';
      new Counter({ name: 'strata_restarts_total', help, registers }).inc(restarts);
      const ended = new Gauge({
        name: 'strata_last_end',
        help: 'How the process before this one ended: 1 for that reason, 0 for the others',
        labelNames: ['reason'],
        registers,
      });
      for (const reason of END_REASONS) ended.set({ reason }, lastEnd?.reason === reason ? 1 : 0);
    },
  };
}

function workMetrics(registers: Registers): Pick<Metrics, 'webhookAttempted' | 'workflowStep'> {
  const webhookSeconds = new Histogram({
    name: 'strata_webhook_attempt_seconds',
    help: 'Attempts at webhook deliveries by outcome: succeeded, failed, or refused, when nothing was sent',
    labelNames: ['outcome'],
    buckets: SECONDS,
    registers,
  });
  const workflowSteps = new Counter({
    name: 'strata_workflow_steps_total',
    help: 'Steps of workflows carried out by this process, by workflow and outcome: done, or failed, to be tried again',
    labelNames: ['workflow', 'outcome'],
    registers,
  });
  return {
    webhookAttempted: (outcome, durationMs) => webhookSeconds.observe({ outcome }, durationMs / 1_000),
    workflowStep: (workflow, outcome) => workflowSteps.inc({ workflow, outcome }),
  };
}

function periodicMetrics(registers: Registers): Pick<Metrics, 'periodic'> {
  const succeededAt = new Gauge({
    name: 'strata_background_last_success_timestamp_seconds',
    help: 'Unix time at which this process last finished periodic work without a fault, by work; 0 before the first time',
    labelNames: ['work'],
    registers,
  });
  return {
    periodic(work) {
      succeededAt.set({ work }, 0);
      return { succeeded: () => succeededAt.setToCurrentTime({ work }) };
    },
  };
}

function showBuild(registers: Registers, labels: { readonly version: string; readonly node: string }): void {
  const build = new Gauge({
    name: 'strata_build_info',
    help: 'Always 1; the labels say which version this process is, and on which Node it runs',
    labelNames: ['version', 'node'],
    registers,
  });
  build.set(labels, 1);
}

function setRoles(registers: Registers, running: readonly Role[]): void {
  const gauge = new Gauge({
    name: 'strata_role',
    help: '1 for each role that this process runs, else 0',
    labelNames: ['role'],
    registers,
  });
  for (const role of ROLES) gauge.set({ role }, running.includes(role) ? 1 : 0);
}

/** Returns NaN for a failed read: one part that is down must not hide the other metrics. */
async function figure(read: () => number | Promise<number>): Promise<number> {
  try {
    return await read();
  } catch {
    return Number.NaN;
  }
}
