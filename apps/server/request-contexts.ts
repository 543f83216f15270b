/**
 * Creates the contexts of requests, one for each subject: the front door's, that of pushes, and those of
 * apps/front-door/handler-context.ts.
 *
 * Invariants: transfer and token use are collected in memory, and written every minute and on stop.
 */
import { newDeviceSecret, newUserCode } from '../../adapters/node/device-codes.ts';
import { pause } from '../../adapters/node/pause.ts';
import { newExchangedSecret, newTokenSecret } from '../../adapters/node/token-secret.ts';
import { newWebhookSecret } from '../../adapters/node/webhook-secret.ts';
import { createPostgresPolicyMarks } from '../../adapters/postgres/delivery-store.ts';
import { createPostgresLastUse } from '../../adapters/postgres/last-use.ts';
import { createPostgresRateLimits } from '../../adapters/postgres/rate-limits.ts';
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import type { Background } from '../../core/ports/background.ts';
import type { NewContents } from '../../core/ports/new-contents.ts';
import type { NewObjects } from '../../core/ports/new-objects.ts';
import { createTransferMeter } from '../../core/usage/meter.ts';
import { createPastRepositories, type PastRepositories } from '../../core/use-cases/as-of/repository-as-of.ts';
import { createExportSlots } from '../../core/use-cases/auditing/export-slots.ts';
import { createBucketChecks } from '../../core/use-cases/buckets/bucket-checks.ts';
import { createCompactionRequests } from '../../core/use-cases/compacting/request-compactions.ts';
import { writeManifestNow } from '../../core/use-cases/manifests/write-manifest.ts';
import type { PushContext } from '../../core/use-cases/pushing/push-refs.ts';
import { createWarmClones, type WarmClones } from '../../core/use-cases/reading/prepare-shallow-clones.ts';
import { createArchiveLane } from '../front-door/archive-lane.ts';
import { createBodyBudget } from '../front-door/body-budget.ts';
import { createFailedTokens } from '../front-door/failed-tokens.ts';
import type { FrontDoor } from '../front-door/front-door.ts';
import type {
  AccountsContext,
  AuditingContext,
  BucketsContext,
  HandlerContext,
  ReadingContext,
  ServiceContext,
  TokensContext,
  UndoContext,
  WebhooksContext,
} from '../front-door/handler-context.ts';
import { createKnownAnswers } from '../front-door/known-answers.ts';
import { createRequestTurns } from '../front-door/request-turns.ts';
import { createSlowPushes } from '../front-door/slow-pushes.ts';
import { createSharedTransferBudget } from '../front-door/transfer-budget.ts';
import { createUnsentBudget } from '../front-door/unsent-budget.ts';
import { startPeriodic } from './background.ts';
import { createBackground } from './behind-answers.ts';
import { composeCallers } from './callers.ts';
import type { Composing } from './composing.ts';
import type { FoundationContext } from './foundation.ts';
import type { Opened } from './opened.ts';
import { createRefusedSource, type RefusedSource } from './refused-sources.ts';
import { createClientAddress, createSourceAddressRef } from './source-address.ts';
import { readNotifiedTo } from './webhooks.ts';

/**
 * Concurrent purges of living repositories, of which an account has one: each reads and writes the whole repository.
 * Internal: further purges wait.
 */
const PURGES_AT_ONCE_MAX = 2;
/** Each may take 200 MiB of memory. Internal: further ones wait. */
const LARGE_LISTINGS_AT_ONCE = 2;

const UNREADABLE_HOP =
  'A proxy of STRATA_TRUSTED_PROXIES sent a header of STRATA_FORWARDED_HEADER that cannot be read: such clients share the limits of the proxy';

export interface RequestContexts {
  readonly frontDoor: FrontDoor;
  readonly pushing: PushContext & { readonly newObjects: NewObjects; readonly newContents: NewContents };
  readonly handlers: HandlerContext;
  readonly background: Background;
  readonly warmClones: WarmClones;
  readonly pastRepositories: PastRepositories;
  /** Names the source of a refused request in its log line. */
  readonly refusedSource: RefusedSource;
}

export async function composeRequestContexts(composing: Composing, opened: Opened): Promise<RequestContexts> {
  const { settings, log, onFault, parts } = composing;
  const { foundation, objects, projections, past } = opened;
  const { context } = foundation;
  const metering = composeMetering(composing, opened);
  const background = createBackground(onFault);
  parts.add(() => background.settled());
  const clientAddress = createClientAddress(settings, () =>
    log.warn({ header: settings.forwardedHeader }, UNREADABLE_HOP),
  );
  const refusedSource = createRefusedSource(await context.vault.fingerprint('log-source', 'addresses'), clientAddress);
  const frontDoor = composeFrontDoor(composing, opened, metering, clientAddress);
  const { transferBudget } = metering;
  const warmClones = createWarmClones({ ...context, objects, transferBudget, background, whenIdle: objects.whenIdle });
  const { readModels } = projections;
  return {
    frontDoor,
    pushing: pushingContext(opened, background, warmClones),
    handlers: handlerContext(composing, opened, frontDoor),
    background,
    warmClones,
    pastRepositories: createPastRepositories({
      ...context,
      objects,
      readModels,
      past,
      retentionMs: settings.retentionMs,
    }),
    refusedSource,
  };
}

type Metering = Pick<FrontDoor, 'lastUse' | 'transfer' | 'transferBudget' | 'sourceAddressRef'>;

/** What callers read and which tokens they use, collected in memory. Its last write follows the last request. */
function composeMetering({ metrics, onFault, parts }: Composing, { foundation, projections }: Opened): Metering {
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
  startPeriodic<'every node'>({ onFault, metrics }, parts)('flush', flush);
  const transferBudget = createSharedTransferBudget({ ...context, usage: projections.readModels, transfer });
  return { lastUse, transfer, transferBudget, sourceAddressRef };
}

function composeFrontDoor(
  { settings, log, metrics, onFault, onDiverged, parts }: Composing,
  { foundation, projections }: Opened,
  metering: Metering,
  clientAddress: FrontDoor['clientAddress'],
): FrontDoor {
  const { context, pool } = foundation;
  const { events, entities, clock, ids, written, digest, plans, vault } = context;
  return {
    events,
    entities,
    clock,
    ids,
    written,
    digest,
    plans,
    ...metering,
    rateLimits: createPostgresRateLimits({ pool, digestOf: (key) => vault.fingerprint('rate-limit', key) }),
    failedTokens: createFailedTokens({ clock, tokens: projections.readModels }),
    callers: composeCallers({ settings, metrics, onFault, parts }, foundation),
    changes: projections.readModels,
    bodyBudget: createBodyBudget(),
    unsentBudget: createUnsentBudget(),
    requestTurns: createRequestTurns(),
    slowPushes: createSlowPushes(),
    clientAddress,
    log,
    onDiverged,
  };
}

function pushingContext(
  { foundation, layers, objects, projections }: Opened,
  background: Background,
  warmClones: WarmClones,
): RequestContexts['pushing'] {
  const { events, entities, clock, ids, written, digest, failpoint, settledWithin, compactions } = foundation.context;
  const requestCompaction = createCompactionRequests({ clock, compactions, background });
  return {
    events,
    entities,
    clock,
    ids,
    written,
    digest,
    failpoint,
    layers,
    objects,
    newObjects: objects.newObjects,
    newContents: objects.newContents,
    usage: projections.readModels,
    settledWithin,
    onLayer: (pushed) => {
      requestCompaction(pushed);
      warmClones.pushed(pushed);
    },
  };
}

/** Each part is one subject's context, so that a member is found by the type of its part. */
function handlerContext(composing: Composing, opened: Opened, frontDoor: FrontDoor): HandlerContext {
  const { context } = opened.foundation;
  return {
    ...frontDoor,
    ...accountsContext(context),
    ...tokensContext(context, opened),
    ...bucketsContext(context, opened),
    ...readingContext(opened),
    ...webhooksContext(context, opened),
    ...auditingContext(opened),
    ...undoContext(composing, opened),
    ...serviceContext(composing),
  };
}

function accountsContext({ vault, failpoint }: FoundationContext): AccountsContext {
  return { vault, failpoint };
}

function tokensContext(
  { deviceRequests, refusedExchanges }: FoundationContext,
  { identityTokens }: Opened,
): TokensContext {
  const secrets = { newTokenSecret, newExchangedSecret, newUserCode, newDeviceSecret };
  return { deviceRequests, refusedExchanges, identityTokens, ...secrets };
}

function bucketsContext({ bucketFindings }: FoundationContext, { identity, buckets }: Opened): BucketsContext {
  return { identity, bucketFindings, bucketChecks: createBucketChecks(buckets) };
}

function readingContext({ objects, projections }: Opened): ReadingContext {
  const { readModels } = projections;
  return {
    objects,
    readModels,
    usage: readModels,
    archives: createArchiveLane(),
    largeListings: createFairSlots({ slots: LARGE_LISTINGS_AT_ONCE, slotsPerKey: 1 }),
    ...createKnownAnswers(),
  };
}

function webhooksContext({ deliveries, budgets, waiting }: FoundationContext, { outgoing }: Opened): WebhooksContext {
  return { outgoing, deliveries, budgets, waiting, newWebhookSecret };
}

function auditingContext({ checkpoints, past, states }: Opened): AuditingContext {
  const { accountStates, repositoryRefs } = states;
  return { checkpoints, accountStates, repositoryRefs, past, exportSlots: createExportSlots() };
}

function undoContext({ settings, log }: Composing, { foundation, layers, objects, past }: Opened): UndoContext {
  const { context, pool } = foundation;
  const { retentionMs } = settings;
  const manifests = { ...context, layers, past, retentionMs, log };
  return {
    layers,
    drops: objects,
    pause,
    settledWithin: context.settledWithin,
    marks: createPostgresPolicyMarks(pool),
    notifiedTo: readNotifiedTo(pool),
    purgeSlots: createFairSlots({ slots: PURGES_AT_ONCE_MAX, slotsPerKey: 1 }),
    manifestNow: (of) => writeManifestNow(manifests, of),
    retentionMs,
  };
}

function serviceContext({ settings }: Composing): ServiceContext {
  return {
    addresses: () => ({ baseUrl: settings.baseUrl, webUrl: settings.webUrl }),
  };
}
