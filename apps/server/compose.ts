/**
 * Chooses the server's adapters and connects its parts.
 *
 * Invariants: only apps/ knows which technology implements a port. Stopping drains requests first, then flushes the
 * figures collected in memory, then closes parts in the reverse order of opening, PostgreSQL last.
 */
import type { Server } from 'node:http';
import path from 'node:path';
import { Server as TlsServer } from 'node:tls';
import type { Logger } from 'pino';
import { createGitObjectDatabase, type GitObjectDatabase } from '../../adapters/git/object-database.ts';
import { createHttpEgress } from '../../adapters/http-egress/egress.ts';
import { createIsomorphicFirstCommits } from '../../adapters/isomorphic-git/first-commits.ts';
import { createJoseIdentityTokens } from '../../adapters/jose/identity-tokens.ts';
import { systemClock } from '../../adapters/node/clock.ts';
import { newDeviceSecret, newUserCode } from '../../adapters/node/device-codes.ts';
import { pause } from '../../adapters/node/pause.ts';
import { newExchangedSecret, newTokenSecret } from '../../adapters/node/token-secret.ts';
import { newWebhookSecret } from '../../adapters/node/webhook-secret.ts';
import { createOneTimeCodes } from '../../adapters/otp/one-time-codes.ts';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresLastUse } from '../../adapters/postgres/last-use.ts';
import { createPostgresRateLimits } from '../../adapters/postgres/rate-limits.ts';
import { createWebauthnPasskeys } from '../../adapters/webauthn/passkeys.ts';
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import { METRICS_AGE_MS_MAX, PURGES_AT_ONCE_MAX, READINESS_AGE_MS_MAX } from '../../core/kernel/limits.ts';
import type { IdentityIssuer } from '../../core/ports/identity-issuer.ts';
import type { IdentityTokens } from '../../core/ports/identity-tokens.ts';
import type { LayerStores } from '../../core/ports/layer-stores.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { PastEntities } from '../../core/runtime/past-entities.ts';
import { createTransferMeter } from '../../core/usage/meter.ts';
import { createPastRepositories } from '../../core/use-cases/as-of/repository-as-of.ts';
import type { Checkpoints } from '../../core/use-cases/auditing/checkpoints.ts';
import { createExportSlots } from '../../core/use-cases/auditing/export-slots.ts';
import { createBucketChecks } from '../../core/use-cases/buckets/bucket-checks.ts';
import { createLayerStores } from '../../core/use-cases/buckets/layer-stores.ts';
import { createBucketErrors } from '../../core/use-cases/buckets/record-bucket-error.ts';
import { createCompactionRequests } from '../../core/use-cases/compacting/request-compactions.ts';
import { repeatErasures } from '../../core/use-cases/erasing/repeat-erasures.ts';
import type { PushedLayer } from '../../core/use-cases/pushing/push-refs.ts';
import { createWarmClones } from '../../core/use-cases/reading/warm-clones.ts';
import { createCacheDrops } from '../../core/use-cases/sweeping/drop-cached.ts';
import { backlogOf } from '../../core/use-cases/webhooks/list-webhook-deliveries.ts';
import packageJson from '../../package.json' with { type: 'json' };
import { createApi } from '../api/app.ts';
import { type BodyCache, createBodyCache } from '../api/body-cache.ts';
import { answerUnreadable } from '../api/faults.ts';
import { createArchiveLane } from '../front-door/archive-lane.ts';
import { createBodyBudget } from '../front-door/body-budget.ts';
import { createFailedTokens } from '../front-door/failed-tokens.ts';
import { createKnownAnswers } from '../front-door/known-answers.ts';
import { createRequestTurns } from '../front-door/request-turns.ts';
import { createSharedTransferBudget } from '../front-door/transfer-budget.ts';
import { createUnsentBudget } from '../front-door/unsent-budget.ts';
import { createRefAnswers, type RefAnswers } from '../git-http/advertise.ts';
import { createGitHandler, type GitHandler } from '../git-http/handler.ts';
import { createRenderer, type Renderer } from '../website/rendering/renderer.ts';
import { createWebsite } from '../website/site.ts';
import { type ComposedAccountStates, composeAccountStates } from './account-states.ts';
import { createApiReference } from './api-reference.ts';
import { composeCheckpoints } from './auditing.ts';
import { startPeriodic } from './background.ts';
import { createBackground } from './behind-answers.ts';
import { type ComposedBuckets, composeBuckets } from './buckets.ts';
import { composeCallers } from './callers.ts';
import { type Closer, closer } from './closer.ts';
import { composeFoundation, type Foundation } from './foundation.ts';
import { type GaugesOptions, registerGauges } from './gauges.ts';
import { createHttpServer } from './http.ts';
import { composeIdentity, composeRoles } from './identity.ts';
import { openLayerStorage } from './layer-storage.ts';
import { createMetrics, type Metrics } from './metrics.ts';
import { createMetricsPeers } from './metrics-peers.ts';
import { composePastEntities } from './past-entities.ts';
import type { Probes } from './probes.ts';
import { type ComposedProjections, composeProjections } from './projections.ts';
import { readiness } from './readiness.ts';
import { createRefusedSource } from './refused-sources.ts';
import { openRunRecord, type RunRecord, type StrayKind } from './run-record.ts';
import type { Role, Settings } from './settings.ts';
import { cutSlowReaders } from './slow-readers.ts';
import { createSnapshot } from './snapshot.ts';
import { createClientAddress, createOwnAddress, createSourceAddressRef } from './source-address.ts';
import { createTlsRenewal } from './tls-renewal.ts';
import { readNotifiedTo } from './webhooks.ts';
import { startWork } from './work.ts';

/** Bounds the entities in memory: a few hundred thousand small ones, or a few very large ones. */
const ENTITIES_SIZE_BYTES_MAX = 64 * 1024 * 1024;

export interface ComposedServer {
  /** Not yet listening. */
  readonly http: Server;
  /** Takes that this process serves, and how it ends. */
  readonly runRecord: Pick<RunRecord, 'begin' | 'end'>;
  /** Takes the files of a renewed TLS certificate at once; null without TLS. */
  readonly renewCertificate: (() => Promise<void>) | null;
  /** Counts a failure that nobody caught. */
  readonly countStray: (kind: StrayKind) => void;
  /** Drains and closes everything. */
  stop(): Promise<void>;
}

export async function composeServer(settings: Settings, log: Logger): Promise<ComposedServer> {
  const parts = closer();
  const metrics = createMetrics();
  const onFault = (what: string, cause: unknown): void => {
    metrics.fault(what);
    log.error({ err: cause, what }, 'A fault was survived');
  };
  const composing: Composing = { settings, log, metrics, onFault, parts };
  try {
    const opened = await open(composing);
    const { foundation, projections } = opened;
    const { context } = foundation;
    const runs = (role: Role): boolean => settings.roles.includes(role);
    metrics.roles(settings.roles);
    const runRecord = openRunRecord(settings.dataDir, { now: context.clock.now, log });
    metrics.runs(runRecord);
    await repeatErasures({ ...context, platformStore: opened.layers.platform, log });
    await projections.runner.start({ lead: runs('worker') });
    const work = runs('worker') ? await startWork({ ...composing, ...opened }) : null;
    if (work !== null) parts.add(work.stop);
    const shared = await requestContext(composing, opened);
    const caches = composeCaches(composing);
    const git = composeGit(composing, shared, caches);
    const api = composeApi(composing, opened, shared, caches);
    await api.ready();
    const website = await composeWebsite(composing, opened, shared, caches);
    await website.ready();
    const { readModels, timers } = projections;
    const healths = { ...(foundation.clock === null ? {} : { clock: foundation.clock }), ...work?.healths };
    startCacheDrops(composing, opened);
    registerGauges({
      metrics,
      clock: context.clock,
      entities: context.entities,
      objects: opened.objects,
      deliveries: { backlog: () => backlogOf(readModels, context.waiting) },
      timers: [timers, context.deviceRequests, context.compactions, context.manifests],
      leases: foundation.leases,
      keptBytes: keptBytesOf(opened, caches),
      parkedStreams: () => projections.runner.waiting(),
    });
    const http = createHttpServer({
      tls: settings.tls,
      git: runs('git') ? git : null,
      probes: probesOf(composing, () => readiness({ log: context.entities.barrier() }, healths)),
      rest: runs('api') ? (request, response) => api.routing(request, response) : null,
      website: runs('website') ? (request, response) => website.routing(request, response) : null,
      newRequestId: () => context.ids.next(),
      isExempt: createOwnAddress(settings.trustedProxies),
      onUnreadable: (error, socket) => answerUnreadable(error, socket, context.ids.next()),
    });
    cutSlowReaders(http, () => {
      metrics.slowReader();
      log.info({}, 'A client was disconnected, since it read too slowly');
    });
    const countStray = (kind: StrayKind): void => {
      metrics.stray(kind);
      runRecord.noteStray(kind);
    };
    const renewCertificate = startRenewal(composing, http);
    return { http, runRecord, countStray, renewCertificate, stop: () => stop(http, parts) };
  } catch (error) {
    await parts.close();
    throw error;
  }
}

/** What is kept in memory in case it is asked for again. */
interface Caches {
  readonly refAnswers: RefAnswers;
  readonly bodies: BodyCache;
  readonly renderer: Renderer;
}

function composeCaches({ parts }: Composing): Caches {
  const renderer = createRenderer();
  parts.add(() => renderer.close());
  return { refAnswers: createRefAnswers(`strata/${packageJson.version}`), bodies: createBodyCache(), renderer };
}

function keptBytesOf({ objects }: Opened, { refAnswers, bodies, renderer }: Caches): GaugesOptions['keptBytes'] {
  return {
    ...objects.keptBytes,
    ref_answers: refAnswers.memoryBytes,
    rest_bodies: bodies.memoryBytes,
    rendered_pages: renderer.memoryBytes,
  };
}

/** Scrapes and checks share one answer, so that their number costs nothing. */
function probesOf({ settings, metrics }: Composing, ready: Probes['ready']): Probes {
  const { monotonicMs } = systemClock;
  const made = async () => ({ contentType: metrics.contentType, bytes: Buffer.from(await metrics.text()) });
  return {
    roles: settings.roles,
    metrics: createSnapshot(made, { ageMsMax: METRICS_AGE_MS_MAX, monotonicMs }),
    ready: createSnapshot(ready, { ageMsMax: READINESS_AGE_MS_MAX, monotonicMs }),
    mayScrape: createMetricsPeers(settings),
  };
}

interface Composing {
  readonly settings: Settings;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly onFault: (what: string, cause: unknown) => void;
  /** The open parts; `close` closes them in the reverse order of opening. */
  readonly parts: Closer;
}

interface Opened {
  readonly foundation: Foundation;
  readonly layers: LayerStores;
  readonly objects: GitObjectDatabase;
  readonly projections: ComposedProjections;
  readonly outgoing: OutgoingRequests;
  readonly identity: IdentityIssuer;
  readonly buckets: ComposedBuckets;
  readonly identityTokens: IdentityTokens;
  readonly checkpoints: Checkpoints;
  readonly past: PastEntities;
  readonly states: ComposedAccountStates;
}

/** Opens the stores, and the client that sends all requests to users' URLs. */
async function open({ settings, log, metrics, onFault, parts }: Composing): Promise<Opened> {
  let objects: GitObjectDatabase | null = null;
  const foundation = await composeFoundation(settings, log, {
    besideServer: false,
    entitiesSizeBytesMax: ENTITIES_SIZE_BYTES_MAX,
    onFault,
    onForget: () => objects?.doubt(),
  });
  parts.add(() => foundation.close());
  const identity = composeIdentity(settings, foundation, onFault);
  const roles = composeRoles(settings, foundation, identity);
  parts.add(async () => roles.close());
  const buckets = composeBuckets(settings, roles);
  const background = createBackground(onFault);
  parts.add(() => background.settled());
  const layers = createLayerStores({
    ...foundation.context,
    platform: await openLayerStorage(settings, log),
    open: buckets.open,
    onError: createBucketErrors({ ...foundation.context, background }),
  });
  objects = await createGitObjectDatabase({
    directory: path.join(settings.dataDir, 'cache'),
    layers,
    cacheBytesMax: settings.cacheBytesMax,
    pushMemoryBytesMax: settings.pushMemoryBytesMax,
    inMemoryGroup: true,
    log,
  });
  const { close: closeObjects } = objects;
  parts.add(closeObjects);
  const projections = composeProjections(foundation, objects, log, metrics.projections);
  parts.add(projections.close);
  const outgoing = createHttpEgress({
    ownUrls: [settings.baseUrl, settings.webUrl],
    privateAllowed: settings.allowPrivateTargets,
  });
  const identityTokens = createJoseIdentityTokens({ outgoing, clock: foundation.context.clock });
  const checkpoints = composeCheckpoints(settings, foundation, layers, projections.readModels);
  const past = composePastEntities(foundation, onFault);
  const states = composeAccountStates(foundation, projections.readModels, onFault);
  return {
    checkpoints,
    past,
    states,
    foundation,
    layers,
    objects,
    projections,
    outgoing,
    identity,
    identityTokens,
    buckets,
  };
}

/** Looks for a renewed TLS certificate now and then, and whenever the result is called; null without TLS. */
function startRenewal({ settings, log, onFault, parts }: Composing, http: Server): ComposedServer['renewCertificate'] {
  const { tls } = settings;
  if (tls === null || !(http instanceof TlsServer)) return null;
  const { look } = createTlsRenewal({ server: http, tls, log });
  startPeriodic<'every node'>(onFault, parts)('tls-renewal', look);
  return look;
}

/** Drops what this node has cached of repositories whose layers went. */
function startCacheDrops({ onFault, parts }: Composing, { foundation, objects }: Opened): void {
  const { events, entities } = foundation.context;
  const drops = createCacheDrops({ events, entities, objects, onFault: (cause) => onFault('cache-drops', cause) });
  parts.add(() => drops.close());
  const background = createBackground(onFault);
  parts.add(() => background.settled());
  background.run('cache-drops', () => drops.catchUp({ aborted: false }));
  startPeriodic<'every node'>(onFault, parts)('cache-drops', drops.catchUp);
}

type RequestContext = Awaited<ReturnType<typeof requestContext>>;

/**
 * The context that REST and Git share. Transfer and token use are collected in memory, flushed every minute and on
 * stop.
 */
async function requestContext({ settings, log, onFault, parts }: Composing, opened: Opened) {
  const { foundation, layers, objects, projections } = opened;
  const { context, pool } = foundation;
  const lastUse = createPostgresLastUse(pool, context.clock);
  const sourceAddressRef = createSourceAddressRef(context.vault);
  const transfer = createTransferMeter(
    { ...context, sourceAddressRef, onFault: (cause) => onFault('flush', cause) },
    context.ids.next().replaceAll('-', ''),
  );
  const flush = async (): Promise<void> => {
    await transfer.flush();
    await lastUse.flush();
  };
  parts.add(flush);
  startPeriodic<'every node'>(onFault, parts)('flush', flush);
  const usage = projections.readModels;
  const bucketChecks = createBucketChecks(opened.buckets);
  const background = createBackground(onFault);
  parts.add(() => background.settled());
  const transferBudget = createSharedTransferBudget({ ...context, usage, transfer });
  const { whenIdle } = objects;
  const warmClones = createWarmClones({ ...context, objects, transferBudget, background, whenIdle });
  const requestCompaction = createCompactionRequests({ ...context, background });
  const { past } = opened;
  const { retentionMs } = settings;
  const { readModels } = projections;
  const clientAddress = createClientAddress(settings.trustedProxies);
  const sourceKey = await context.vault.fingerprint('log-source', 'addresses');
  return {
    ...context,
    layers,
    objects,
    drops: objects,
    usage,
    changes: readModels,
    readModels,
    pastRepositories: createPastRepositories({ ...context, objects, readModels, past, retentionMs }),
    lastUse,
    transfer,
    bodyBudget: createBodyBudget(),
    unsentBudget: createUnsentBudget(),
    requestTurns: createRequestTurns(),
    callers: composeCallers({ settings, onFault, parts }, foundation),
    failedTokens: createFailedTokens({ clock: context.clock, tokens: projections.readModels }),
    bucketChecks,
    archives: createArchiveLane(),
    exportSlots: createExportSlots(),
    pause,
    marks: createPostgresPolicyMarks(pool),
    notifiedTo: readNotifiedTo(opened.foundation.pool),
    purgeSlots: createFairSlots({ slots: PURGES_AT_ONCE_MAX, slotsPerKey: 1 }),
    rateLimits: createPostgresRateLimits({ pool, digestOf: (key) => context.vault.fingerprint('rate-limit', key) }),
    background,
    onLayer: (pushed: PushedLayer) => {
      requestCompaction(pushed);
      warmClones.pushed(pushed);
    },
    warmClones,
    ...createKnownAnswers(),
    transferBudget,
    clientAddress,
    refusedSource: createRefusedSource(sourceKey, clientAddress),
    sourceAddressRef,
    log,
  };
}

function composeGit({ log, metrics }: Composing, shared: RequestContext, { refAnswers }: Caches): GitHandler {
  return createGitHandler({
    ...shared,
    refAnswers,
    onFinished: (finished, request) => {
      metrics.gitFinished(finished);
      log.info({ ...finished, ...shared.refusedSource(finished.status, request) }, 'git');
    },
  });
}

/** What the handlers of the API and the website take beside the shared context. */
function handlerContext({ settings }: Composing, opened: Opened, shared: RequestContext) {
  return {
    ...shared,
    outgoing: opened.outgoing,
    identity: opened.identity,
    identityTokens: opened.identityTokens,
    past: opened.past,
    retentionMs: settings.retentionMs,
    newTokenSecret,
    newExchangedSecret,
    newUserCode,
    newDeviceSecret,
    newWebhookSecret,
    addresses: () => ({ baseUrl: settings.baseUrl, webUrl: settings.webUrl }),
    checkpoints: opened.checkpoints,
    ...opened.states,
  };
}

function composeApi(composing: Composing, opened: Opened, shared: RequestContext, { bodies }: Caches) {
  const { log, metrics } = composing;
  return createApi({
    ...handlerContext(composing, opened, shared),
    bodies,
    version: packageJson.version,
    onFinished: (finished, request) => {
      metrics.apiFinished(finished.operationId ?? 'none', finished.status, finished.durationMs);
      log.info({ ...finished, ...shared.refusedSource(finished.status, request) }, 'api');
    },
  });
}

async function composeWebsite(composing: Composing, opened: Opened, shared: RequestContext, { renderer }: Caches) {
  const { settings, log, metrics } = composing;
  const { context } = opened.foundation;
  return createWebsite({
    ...handlerContext(composing, opened, shared),
    renderer,
    apiReference: createApiReference(packageJson.version),
    firstCommits: await createIsomorphicFirstCommits({ directory: path.join(settings.dataDir, 'first-commits') }),
    ...secondFactors(settings.webUrl),
    signUpOpen: settings.signUpOpen,
    operatorContact: settings.operatorContact,
    formKey: await context.vault.fingerprint('website-forms', 'tokens'),
    onFinished: (finished, request) => {
      metrics.siteFinished(finished.route ?? 'none', finished.status, finished.durationMs);
      log.info({ ...finished, ...shared.refusedSource(finished.status, request) }, 'website');
    },
  });
}

/** Apps and devices list what they hold for several services, so each is named by its host too. */
function secondFactors(webUrl: string) {
  const name = `Strata (${new URL(webUrl).hostname})`;
  return {
    oneTimeCodes: createOneTimeCodes({ issuer: name }),
    passkeys: createWebauthnPasskeys({ webUrl, name }),
  };
}

async function stop(http: Server, parts: Pick<Closer, 'close'>): Promise<void> {
  const closed = new Promise<void>((resolve) => http.close(() => resolve()));
  http.closeIdleConnections();
  await closed;
  await parts.close();
}
