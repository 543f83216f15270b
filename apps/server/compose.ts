/**
 * Chooses the server's adapters and connects its parts. `composeParts` is the list of them, in the order of opening.
 *
 * Invariants: only apps/ knows which technology implements a port. Stopping drains requests first, then flushes the
 * figures collected in memory, then closes parts in the reverse order of opening, PostgreSQL last.
 */
import type { Server } from 'node:http';
import { Server as TlsServer } from 'node:tls';
import type { Logger } from 'pino';
import { systemClock } from '../../adapters/node/clock.ts';
import { LOG_START } from '../../core/kernel/envelope.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import { repeatErasures } from '../../core/use-cases/erasing/repeat-erasures.ts';
import { createCacheDrops } from '../../core/use-cases/sweeping/remove-cached-layers.ts';
import { backlogOf } from '../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { answerUnreadable } from '../api/faults.ts';
import { ownAuthorities } from '../front-door/own-authorities.ts';
import { startPeriodic } from './background.ts';
import { createBackground } from './behind-answers.ts';
import type { Closer } from './closer.ts';
import { type Composing, startComposing } from './composing.ts';
import { registerGauges } from './gauges.ts';
import { createHttpServer, type HttpServerOptions } from './http.ts';
import { createMetricsPeers } from './metrics-peers.ts';
import { type Opened, open } from './opened.ts';
import type { Probes } from './probes.ts';
import { readiness } from './readiness.ts';
import { composeRequestContexts } from './request-contexts.ts';
import { openRunRecord, type RunRecord, type StrayKind } from './run-record.ts';
import { composeApi, composeCaches, composeGit, composeWebsite } from './serving.ts';
import type { Role, Settings } from './settings.ts';
import { cutSlowReaders } from './slow-readers.ts';
import { createSnapshot } from './snapshot.ts';
import { createOwnAddress } from './source-address.ts';
import { watchStorage } from './storage-health.ts';
import { createTlsRenewal } from './tls-renewal.ts';
import { type StartedWork, startWork } from './work.ts';

/**
 * The metrics are made once for all who ask within this span, and whether a node is ready once within the other.
 * Internal: it is how fresh an answer to the operator is.
 */
const METRICS_AGE_MS_MAX = 1_000;
const READINESS_AGE_MS_MAX = 250;

const FIRST_EVENTS = 100;

export interface ComposedServer {
  /** Not yet listening. */
  readonly http: Server;
  /** Takes that this process serves, and how it ends. */
  readonly runRecord: Pick<RunRecord, 'begin' | 'end'>;
  /** Takes the files of a renewed TLS certificate immediately; null without TLS. */
  readonly renewCertificate: (() => Promise<void>) | null;
  /** Whether the service has an account, or had one. */
  readonly hasAccount: () => Promise<boolean>;
  /** Counts a failure that nobody caught. */
  readonly countStray: (kind: StrayKind) => void;
  /** Drains and closes everything. */
  stop(): Promise<void>;
}

export async function composeServer(settings: Settings, log: Logger): Promise<ComposedServer> {
  const composing = await startComposing(settings, log);
  try {
    return await composeParts(composing);
  } catch (error) {
    await composing.parts.close();
    throw error;
  }
}

async function composeParts(composing: Composing): Promise<ComposedServer> {
  const { metrics, parts, tracing } = composing;
  const opened = await open(composing);
  const { foundation, projections } = opened;
  const { context } = foundation;
  const runRecord = startRunRecord(composing, opened);
  await repeatErasures({ ...context, platformStore: opened.layers.platform, log: composing.log });
  await projections.list();
  await projections.runner.start({ lead: runs(composing, 'worker') });
  const work = await startWorkerWork(composing, opened);
  const contexts = await composeRequestContexts(composing, opened);
  const caches = composeCaches(composing);
  const git = composeGit(composing, contexts, caches);
  const api = await composeApi(composing, contexts, caches);
  const website = await composeWebsite(composing, context, contexts, caches);
  startCacheDrops(composing, opened);
  startGauges(composing, opened);
  const storage = watchStorage(composing, opened.watchedLayers, startPeriodic(composing, composing.parts));
  const http = startHttp(composing, opened, {
    git: runs(composing, 'git') ? tracing.traced(git) : null,
    probes: composeProbes(composing, opened, { ...storage, ...work?.healths }),
    rest: runs(composing, 'api') ? tracing.traced((request, response) => api.routing(request, response)) : null,
    website: runs(composing, 'website')
      ? tracing.traced((request, response) => website.routing(request, response))
      : null,
  });
  const countStray = (kind: StrayKind): void => {
    metrics.stray(kind);
    runRecord.noteStray(kind);
  };
  const renewCertificate = startRenewal(composing, http);
  const hasAccount = (): Promise<boolean> => beginsWithAccount(context.events);
  return { http, runRecord, hasAccount, countStray, renewCertificate, stop: () => stop(http, parts) };
}

/** The first account is among the first events. Where they are many without one, people use the service as well. */
async function beginsWithAccount(events: Pick<EventStore, 'readAll'>): Promise<boolean> {
  const first = await events.readAll(LOG_START, FIRST_EVENTS);
  return first.length >= FIRST_EVENTS || first.some(({ type }) => type === 'AccountCreated');
}

function runs({ settings }: Pick<Composing, 'settings'>, role: Role): boolean {
  return settings.roles.includes(role);
}

/** How the processes before this one ended, and which roles this one runs. */
function startRunRecord({ settings, log, metrics }: Composing, { foundation }: Opened): RunRecord {
  metrics.roles(settings.roles);
  metrics.build(packageJson.version, process.version);
  const runRecord = openRunRecord(settings.dataDir, { now: foundation.context.clock.now, log });
  metrics.runs(runRecord);
  return runRecord;
}

/** Null without the role `worker`. Closing it stops all that it does in the background. */
async function startWorkerWork(composing: Composing, opened: Opened): Promise<StartedWork | null> {
  if (!runs(composing, 'worker')) return null;
  const work = await startWork(composing, opened);
  composing.parts.add(work.stop);
  return work;
}

/** Drops what this node has cached of repositories whose layers went. */
function startCacheDrops({ metrics, onFault, parts }: Composing, { foundation, objects }: Opened): void {
  const { events, entities } = foundation.context;
  const drops = createCacheDrops({ events, entities, objects, onFault: (cause) => onFault('cache-drops', cause) });
  parts.add(() => drops.close());
  const background = createBackground(onFault);
  parts.add(() => background.settled());
  background.run('cache-drops', () => drops.catchUp({ aborted: false }));
  startPeriodic<'every node'>({ onFault, metrics }, parts)('cache-drops', drops.catchUp);
}

function startGauges({ settings, metrics }: Composing, { foundation, objects, projections }: Opened): void {
  const { context, leases } = foundation;
  const { readModels, timers, runner } = projections;
  registerGauges({
    metrics,
    clock: context.clock,
    entities: context.entities,
    objects,
    deliveries: { backlog: () => backlogOf(readModels, context.waiting) },
    timers: [timers, context.deviceRequests, context.compactions, context.manifests],
    leases,
    nodeClock: foundation.clock,
    pools: () => ({ ...foundation.connections.figures(), read_models: projections.poolFigures() }),
    models: {
      names: projections.models,
      figures: runner.figures,
      positionsCount: settings.eventStoreDb === null,
    },
  });
}

/** Scrapes and checks share one answer, so that their number costs nothing. */
function composeProbes(
  { settings, metrics }: Composing,
  { foundation }: Opened,
  others: StartedWork['healths'],
): Probes {
  const { monotonicMs } = systemClock;
  const { context, clock } = foundation;
  const healths = { ...(clock === null ? {} : { clock }), ...others };
  const ready: Probes['ready'] = () => readiness({ log: context.entities.barrier() }, healths);
  const made = async () => ({ contentType: metrics.contentType, bytes: Buffer.from(await metrics.text()) });
  const isReady = createSnapshot(ready, { ageMsMax: READINESS_AGE_MS_MAX, monotonicMs });
  const isDegraded = (part: string) => async () => ((await isReady()).parts[part] === 'ok' ? 0 : 1);
  metrics.gauges(
    'strata_part_degraded',
    '1 while a part of /readyz is not ok, else 0, by part',
    'part',
    Object.fromEntries(['log', ...Object.keys(healths)].map((part) => [part, isDegraded(part)])),
  );
  return {
    roles: settings.roles,
    metrics: createSnapshot(made, { ageMsMax: METRICS_AGE_MS_MAX, monotonicMs }),
    ready: isReady,
    mayScrape: createMetricsPeers(settings),
  };
}

/** The HTTP server, which cuts slow readers. `stop` closes it before all parts. */
function startHttp(
  { settings, log, metrics }: Composing,
  { foundation }: Opened,
  served: Pick<HttpServerOptions, 'git' | 'probes' | 'rest' | 'website'>,
): Server {
  const { ids } = foundation.context;
  const http = createHttpServer({
    ...served,
    tls: settings.tls,
    newRequestId: () => ids.next(),
    authorities: ownAuthorities(settings),
    isExempt: createOwnAddress(settings.trustedProxies),
    onUnreadable: (error, socket) => answerUnreadable(error, socket, ids.next()),
  });
  cutSlowReaders(http, () => {
    metrics.slowReader();
    log.info({}, 'A client was disconnected, since it read too slowly');
  });
  return http;
}

/** Looks for a renewed TLS certificate now and then, and whenever the result is called; null without TLS. */
function startRenewal(
  { settings, log, metrics, onFault, parts }: Composing,
  http: Server,
): ComposedServer['renewCertificate'] {
  const { tls } = settings;
  if (tls === null || !(http instanceof TlsServer)) return null;
  const { look, expiresAtMs } = createTlsRenewal({ server: http, tls, log });
  metrics.gauge(
    'strata_tls_certificate_expiry_timestamp_seconds',
    'Unix time at which the TLS certificate of this node expires',
    () => expiresAtMs() / 1_000,
  );
  startPeriodic<'every node'>({ onFault, metrics }, parts)('tls-renewal', look);
  return look;
}

async function stop(http: Server, parts: Pick<Closer, 'close'>): Promise<void> {
  const closed = new Promise<void>((resolve) => http.close(() => resolve()));
  http.closeIdleConnections();
  await closed;
  await parts.close();
}
