/**
 * An API over the in-memory ports. The use cases make accounts, tokens and repositories; a push is an event that the
 * fixture appends to the log.
 */

import { setImmediate } from 'node:timers/promises';
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import { createNewObjects } from '../../adapters/git/packs/new-objects.ts';
import { createHttpEgress } from '../../adapters/http-egress/egress.ts';
import { createJoseIdentityTokens } from '../../adapters/jose/identity-tokens.ts';
import { newDeviceSecret, newUserCode } from '../../adapters/node/device-codes.ts';
import { digest } from '../../adapters/node/digest.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { pause, settledWithin } from '../../adapters/node/pause.ts';
import { spellDomain } from '../../adapters/node/spell-domain.ts';
import { newExchangedSecret, newTokenSecret } from '../../adapters/node/token-secret.ts';
import { newWebhookSecret } from '../../adapters/node/webhook-secret.ts';
import { createApi, type Timeouts } from '../../apps/api/app.ts';
import { createBodyCache } from '../../apps/api/body-cache.ts';
import type { ApiContext, FinishedApiRequest } from '../../apps/api/context.ts';
import { createArchiveLane } from '../../apps/front-door/archive-lane.ts';
import { createBodyBudget } from '../../apps/front-door/body-budget.ts';
import { createCallers } from '../../apps/front-door/callers.ts';
import { createFailedTokens } from '../../apps/front-door/failed-tokens.ts';
import { createKnownAnswers } from '../../apps/front-door/known-answers.ts';
import { createRequestTurns } from '../../apps/front-door/request-turns.ts';
import { createSlowPushes } from '../../apps/front-door/slow-pushes.ts';
import { createSharedTransferBudget } from '../../apps/front-door/transfer-budget.ts';
import { createUnsentBudget } from '../../apps/front-door/unsent-budget.ts';
import type { AccessTokenSettings } from '../../core/access-token/commands.ts';
import { ALL_REPOSITORIES, type RepositorySelection } from '../../core/access-token/repository-selection.ts';
import type { WantedBucketSettings } from '../../core/account/buckets/settings.ts';
import { DEFAULT_PLANS, type Plan, type Plans } from '../../core/account/plans.ts';
import type { Cause, RecordedEvent } from '../../core/kernel/envelope.ts';
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import {
  type AccessTokenId,
  type AccountId,
  type ObjectId,
  type RepositoryId,
  type StorageBucketId,
  type Timestamp,
  type TrustRuleId,
  timestamp,
  type WebhookDeliveryId,
  type WebhookId,
} from '../../core/kernel/ids.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { IdentityTokens } from '../../core/ports/identity-tokens.ts';
import type { LastUse, Used } from '../../core/ports/last-use.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import { NEWEST_FORMS } from '../../core/ports/running-processes.ts';
import type { Vault } from '../../core/ports/vault.ts';
import { createEntities } from '../../core/runtime/entities.ts';
import { createPastEntities } from '../../core/runtime/past-entities.ts';
import { createTransferMeter } from '../../core/usage/meter.ts';
import { createAccount } from '../../core/use-cases/accounts/accounts.ts';
import { createAccountStates } from '../../core/use-cases/auditing/account-states.ts';
import { createExportSlots } from '../../core/use-cases/auditing/export-slots.ts';
import { createRepositoryRefs } from '../../core/use-cases/auditing/repository-refs.ts';
import { createBucketChecks } from '../../core/use-cases/buckets/bucket-checks.ts';
import { createBucket, deleteBucket, listBuckets } from '../../core/use-cases/buckets/buckets.ts';
import {
  createRepository,
  deleteRepository,
  type FoundRepository,
} from '../../core/use-cases/repositories/repositories.ts';
import { createAccessToken } from '../../core/use-cases/tokens/access-tokens.ts';
import {
  createTrustRule,
  deleteTrustRule,
  listTrustRules,
  type NewTrustRule,
} from '../../core/use-cases/tokens/trust-rules.ts';
import { pingWebhook } from '../../core/use-cases/webhooks/webhook-deliveries.ts';
import { createWebhook, deleteWebhook, listWebhooks } from '../../core/use-cases/webhooks/webhooks.ts';
import { layersIn } from './layers-in.ts';
import { createMemoryBucketFindings } from './memory/bucket-findings.ts';
import { createMemoryBuckets, type MemoryBuckets } from './memory/buckets.ts';
import { createMemoryDeliveryStore, createMemoryPolicyMarks } from './memory/delivery-store.ts';
import { createMemoryDeviceLoginRequests } from './memory/device-login-requests.ts';
import { createMemoryEventStore } from './memory/event-store.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { createMemoryCheckpoints } from './memory/log-keys.ts';
import { createMemoryObjects, type MemoryObjects } from './memory/object-database.ts';
import { appendPush } from './memory/pushes.ts';
import { createMemoryRateLimits } from './memory/rate-limits.ts';
import { createMemoryReadModels, type MemoryReadModels } from './memory/read-models.ts';
import { createMemoryRefusedExchanges } from './memory/refused-exchanges.ts';
import { createMemoryIdentity } from './memory/signing-keys.ts';
import { createMemorySnapshots } from './memory/snapshots.ts';
import { createMemoryVault } from './memory/vault.ts';
import { createMemoryWaitingDeliveries, createMemoryWebhookBudgets } from './memory/webhook-budgets.ts';

export interface TestClock extends Clock {
  advance(ms: number): void;
}

export interface TestToken {
  readonly id: AccessTokenId;
  readonly secret: string;
}

export interface ApiFixture {
  readonly app: FastifyInstance;
  readonly context: ApiContext;
  readonly clock: TestClock;
  readonly objects: MemoryObjects;
  readonly buckets: MemoryBuckets;
  readonly readModels: MemoryReadModels;
  readonly vault: Vault;
  /** How far policies have come. */
  readonly marks: PolicyMarks;
  /** Every log line, as JSON text. */
  readonly logged: string[];
  /** How often a request failed since the log had diverged. */
  readonly diverged: { count: number };
  readonly finished: FinishedApiRequest[];
  account(username: string, plan?: Plan): Promise<AccountId>;
  /** The token has the grant ALL and the scope ALL_REPO unless `settings` say otherwise. */
  token(account: AccountId, settings?: Partial<AccessTokenSettings>): Promise<TestToken>;
  repository(account: AccountId, name: string, defaultBranch?: string): Promise<FoundRepository>;
  /** Makes a repository and deletes it. */
  deletedRepository(account: AccountId): Promise<RepositoryId>;
  /** Makes a webhook and first deletes every webhook that the account has. */
  webhook(account: AccountId, selection?: RepositorySelection): Promise<WebhookId>;
  /** Makes a storage bucket with a role, and first deletes every bucket that the account has. */
  bucket(account: AccountId): Promise<StorageBucketId>;
  /** Makes a trust rule with no more than the grant API_OIDC_TRUST, and first deletes every rule of the account. */
  trustRule(account: AccountId, wanted?: Partial<NewTrustRule>): Promise<TrustRuleId>;
  /** Requests a ping delivery to the webhook. */
  delivery(account: AccountId, webhook: WebhookId): Promise<WebhookDeliveryId>;
  /** Moves refs as a push does; null deletes a ref. */
  push(
    repository: FoundRepository,
    updates: Readonly<Record<string, ObjectId | null>>,
    layerSizeBytes?: number,
  ): Promise<void>;
  /** Sends a request with a token; `body` is sent as JSON. */
  request(
    method: NonNullable<InjectOptions['method']>,
    url: string,
    token: TestToken | null,
    options?: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<LightMyRequestResponse>;
  /** Listens on a free port of the loopback interface and resolves with the port. */
  listen(): Promise<number>;
  close(): Promise<void>;
}

export interface FixtureOptions {
  readonly plans?: Plans;
  readonly timeouts?: Timeouts;
  /** Wraps the event log that the API uses. */
  readonly wrapEvents?: (events: EventStore) => EventStore;
  /** Called before each read of branches or commits from the read model, so that a test can push at that moment. */
  readonly beforeRead?: () => Promise<void>;
  readonly objects?: (objects: MemoryObjects) => ApiContext['objects'];
  readonly sourceAddressRef?: ApiContext['sourceAddressRef'];
  /** Bytes of memory for cached entities; with 0 each lookup reads the entity's stream. */
  readonly entitiesSizeBytesMax?: number;
  /** Called at each named step of a use case; may throw, as if the process died there. */
  readonly failpoint?: ApiContext['failpoint'];
  readonly baseUrl?: string;
  /** Multiplies the rates of callers. */
  readonly rateFactor?: number;
  /** Takes the place of parts of an issuer whose keys are no real ones. */
  readonly identity?: Partial<ApiContext['identity']>;
  /** Sends the requests to URLs of users; by default no request reaches anybody but the addresses of example names. */
  readonly outgoing?: OutgoingRequests;
  readonly identityTokens?: IdentityTokens;
}

const CAUSE: Cause = {
  actor: { kind: 'admin', id: 'test' },
  requestId: 'test',
  sourceAddressRef: null,
  causationId: null,
};

/** The settings of a bucket that a role lets the service into. */
export const ROLE_SETTINGS: WantedBucketSettings = {
  ...{ provider: 'S3', authMode: 'OIDC', bucketName: 'layers', keyPrefix: 'strata/' },
  ...{ roleArn: 'arn:aws:iam::123456789012:role/strata', region: null, endpointUrl: null },
  ...{ accessKeyId: null, secretAccessKey: null },
};

export async function createApiFixture(options: FixtureOptions = {}): Promise<ApiFixture> {
  const { baseUrl = 'http://localhost:8080' } = options;
  const clock = createTestClock();
  const log = createMemoryEventStore();
  const events = options.wrapEvents?.(log) ?? log;
  const objects = createMemoryObjects();
  const readModels = createMemoryReadModels({ events: log, digest, clock, objects });
  const logged: string[] = [];
  const diverged = { count: 0 };
  const finished: FinishedApiRequest[] = [];
  const write = (fields: object, message: string): void => {
    logged.push(JSON.stringify({ ...fields, message }));
  };
  const snapshots = createMemorySnapshots();
  const entities = createEntities({
    events,
    snapshots,
    complete: async (event) => event,
    cacheSizeBytesMax: options.entitiesSizeBytesMax ?? 16 * 1024 * 1024,
    onFault: (what, cause) => write({ what, cause: String(cause) }, 'fault'),
    gather: async () => undefined,
  });
  await entities.start();
  const vault = createMemoryVault();
  const marks = createMemoryPolicyMarks();
  const failpoint = options.failpoint ?? (async () => undefined);
  const base = { events, entities, clock, ids: uuids, written: NEWEST_FORMS, failpoint };
  const complete = async (event: RecordedEvent) => event;
  const onFault = (what: string, cause: unknown): void => write({ what, cause: String(cause) }, 'fault');
  const past = createPastEntities({ events, entities, snapshots, complete, onFault });
  const reading = { ...base, digest, readModels, past, snapshots, complete, onFault };
  const buckets = createMemoryBuckets();
  const plans = options.plans ?? DEFAULT_PLANS;
  const sourceAddressRef = options.sourceAddressRef ?? (async () => null);
  const transfer = createTransferMeter(
    { ...base, sourceAddressRef, onFault: (cause) => onFault('transfer', cause) },
    'test',
  );
  const outgoing = options.outgoing ?? exampleEgress();
  const context: ApiContext = {
    ...base,
    past,
    layers: layersIn(createMemoryLayerStore()),
    newObjects: createNewObjects(null),
    newContents: {
      hold: () => {
        throw new Error('There is no disk in memory');
      },
    },
    drops: {
      holdMore: async () => false,
      keep: async () => Promise.reject(new Error('There are no packs in memory')),
    },
    marks,
    notifiedTo: async () => null,
    onLayer: () => undefined,
    manifestNow: async () => undefined,
    pause,
    settledWithin,
    purgeSlots: createFairSlots({ slots: 1, slotsPerKey: 1 }),
    retentionMs: 30 * 24 * 60 * 60_000,
    ...createKnownAnswers(),
    digest,
    plans,
    vault,
    bucketChecks: createBucketChecks(buckets),
    bucketFindings: createMemoryBucketFindings(),
    archives: createArchiveLane(),
    largeListings: createFairSlots({ slots: 2, slotsPerKey: 1 }),
    exportSlots: createExportSlots(),
    identity: { ...createMemoryIdentity(clock, baseUrl), ...options.identity },
    deliveries: createMemoryDeliveryStore(),
    budgets: createMemoryWebhookBudgets(),
    waiting: createMemoryWaitingDeliveries(),
    deviceRequests: createMemoryDeviceLoginRequests(),
    identityTokens: options.identityTokens ?? createJoseIdentityTokens({ outgoing, clock }),
    refusedExchanges: createMemoryRefusedExchanges(),
    checkpoints: createMemoryCheckpoints({ readModels, digest, clock }),
    accountStates: createAccountStates(reading),
    repositoryRefs: createRepositoryRefs(reading),
    outgoing,
    readModels: {
      ...readModels,
      branches: async (id) => {
        await options.beforeRead?.();
        return readModels.branches(id);
      },
      defaultBranchCommits: async (id, page) => {
        await options.beforeRead?.();
        return readModels.defaultBranchCommits(id, page);
      },
    },
    objects: options.objects?.(objects) ?? objects.database,
    usage: readModels,
    changes: readModels,
    lastUse: createMemoryLastUse(clock),
    transfer,
    transferBudget: createSharedTransferBudget({ plans, usage: readModels, transfer, clock }),
    bodies: createBodyCache(),
    bodyBudget: createBodyBudget(),
    unsentBudget: createUnsentBudget(),
    requestTurns: createRequestTurns(),
    slowPushes: createSlowPushes(),
    callers: createCallers({ clock, factor: options.rateFactor ?? 1 }),
    failedTokens: createFailedTokens({ clock, tokens: readModels }),
    rateLimits: createMemoryRateLimits(clock),
    newTokenSecret,
    newExchangedSecret,
    newUserCode,
    newDeviceSecret,
    newWebhookSecret,
    clientAddress: (request) => request.socket.remoteAddress ?? '',
    sourceAddressRef,
    addresses: () => ({ baseUrl, webUrl: baseUrl }),
    version: '0.0.0',
    log: { debug: write, info: write, warn: write, error: write },
    onDiverged: () => void (diverged.count += 1),
    onFinished: (request) => finished.push(request),
  };
  const app = createApi(context, options.timeouts === undefined ? {} : { timeouts: options.timeouts });
  await app.ready();
  let deletions = 0;
  const passwords = { expectRoom: () => undefined, hash: async () => 'hash', verify: async () => false };

  return {
    app,
    context,
    clock,
    objects,
    buckets,
    readModels,
    vault,
    marks,
    logged,
    diverged,
    finished,
    account: async (username, plan = 'PRO') => {
      const wanted = { username, email: `${username}@example.org`, password: 'a long password', plan };
      return accepted(await createAccount({ ...base, vault, passwords, spellDomain }, CAUSE, wanted)).id;
    },
    token: async (account, settings = {}) => {
      const secret = newTokenSecret();
      const whole: AccessTokenSettings = {
        name: 'test',
        scope: 'ALL_REPO',
        grants: ['ALL'],
        repositoryIds: [],
        expiresAt: null,
        ...settings,
      };
      const created = accepted(await createAccessToken(context, { account, cause: CAUSE }, whole, secret));
      return { id: created.id, secret };
    },
    repository: async (account, name, defaultBranch) => {
      const wanted = { name, description: null, defaultBranch: defaultBranch ?? null, storageBucketId: null };
      return accepted(await createRepository(context, { account, cause: CAUSE }, wanted));
    },
    deletedRepository: async (account) => {
      const wanted = { name: `deleted-${++deletions}`, description: null, defaultBranch: null, storageBucketId: null };
      const { id } = accepted(await createRepository(context, { account, cause: CAUSE }, wanted));
      return accepted(await deleteRepository(context, { account, cause: CAUSE }, id)).deleted;
    },
    webhook: async (account, selection = ALL_REPOSITORIES) => {
      const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
      for (const { webhook } of await listWebhooks(context, origin)) {
        accepted(await deleteWebhook(context, origin, webhook.id));
      }
      const wanted = { url: 'https://receiver.example/hook', events: ['push'], active: true } as const;
      const created = await createWebhook(context, { ...origin, selection }, wanted, newWebhookSecret());
      return accepted(created).webhook.id;
    },
    bucket: async (account) => {
      const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
      for (const { bucket } of await listBuckets(context, origin)) {
        accepted(await deleteBucket(context, origin, bucket.id));
      }
      return accepted(
        await createBucket(context, origin, { name: 'bucket', isDefault: false, settings: ROLE_SETTINGS }),
      ).bucket.id;
    },
    trustRule: async (account, wanted = {}) => {
      const maker = { grants: ['ALL'], selection: ALL_REPOSITORIES } as const;
      const origin = { account, cause: CAUSE, guarding: async () => ({ guards: [] }), maker };
      for (const { rule } of await listTrustRules(context, account)) {
        accepted(await deleteTrustRule(context, origin, rule.id));
      }
      const rule: NewTrustRule = {
        ...{ name: 'test', issuer: 'https://issuer.example', subject: 'job', claims: {} },
        ...{ grants: ['API_OIDC_TRUST'], scope: 'ALL_REPO', repositoryIds: [] },
        ...wanted,
      };
      return accepted(await createTrustRule(context, origin, rule)).rule.id;
    },
    delivery: async (account, webhook) =>
      accepted(await pingWebhook(context, { account, cause: CAUSE, selection: ALL_REPOSITORIES }, webhook)).deliveryId,
    push: (repository, updates, layerSizeBytes) => appendPush(context, objects, repository, updates, layerSizeBytes),
    request: (method, url, token, { body, headers } = {}) =>
      app.inject({
        method,
        url,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token.secret}` }),
          ...(body === undefined ? {} : { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body === undefined ? {} : { payload: JSON.stringify(body) }),
      }),
    listen: async () => Number(new URL(await app.listen({ port: 0, host: '127.0.0.1' })).port),
    close: async () => {
      await app.close();
      await entities.close();
    },
  };
}

function accepted<Result extends object>(result: Result | { readonly refused: Refusal }): Result {
  if ('refused' in result) throw new Error(`The fixture was refused: ${result.refused.code}`);
  return result;
}

function exampleEgress(): OutgoingRequests {
  return createHttpEgress({
    ownUrls: ['http://localhost:8080', 'https://git.example.org'],
    privateAllowed: false,
    // Every host name resolves to one public address, except names such as `to-10-0-0-1.`, which state their address.
    lookup: async (name) => ({
      addresses: [/^to-([\d-]+)\./.exec(name)?.[1]?.replaceAll('-', '.') ?? '93.184.216.34'],
    }),
  });
}

function createTestClock(): TestClock {
  let now = Date.parse('2026-11-21T10:00:00.000Z');
  return {
    now: () => timestamp(new Date(now).toISOString()),
    monotonicMs: () => now,
    nextTurn: () => setImmediate(),
    advance: (ms) => {
      now += ms;
    },
  };
}

function createMemoryLastUse(clock: Clock): LastUse {
  const uses = new Map<Used, Timestamp>();
  return {
    touch: (token) => {
      uses.set(token, timestamp(`${clock.now().slice(0, 16)}:00.000Z`));
    },
    lastUsedAt: async (tokens) =>
      new Map(
        tokens.flatMap((id) => {
          const at = uses.get(id);
          return at === undefined ? [] : [[id, at] as const];
        }),
      ),
  };
}
