/**
 * An API over the memory twins: accounts, tokens and repositories are made by the use cases themselves, pushes
 * are events put into the log.
 */
import type { FastifyInstance, InjectOptions, LightMyRequestResponse } from 'fastify';
import { createMemoryDeliveryStore } from './memory/delivery-store.ts';
import { createMemoryEventStore } from './memory/event-store.ts';
import { createMemorySnapshots } from './memory/snapshots.ts';
import { createMemoryVault } from './memory/vault.ts';
import { digest } from '../../adapters/node/digest.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { newDeviceSecret, newUserCode } from '../../adapters/node/device-codes.ts';
import { createHttpEgress } from '../../adapters/http-egress/egress.ts';
import { newTokenSecret } from '../../adapters/node/token-secret.ts';
import { newWebhookSecret } from '../../adapters/node/webhook-secret.ts';
import { createApi, type Timeouts } from '../../apps/api/app.ts';
import type { ApiContext, FinishedApiRequest } from '../../apps/api/context.ts';
import type { AccessTokenSettings } from '../../core/access-token/commands.ts';
import { DEFAULT_PLANS, type Plan, type Plans } from '../../core/account/plans.ts';
import { refName } from '../../core/git/ref-name.ts';
import { type Cause, streamName } from '../../core/kernel/envelope.ts';
import {
  type AccessTokenId,
  type AccountId,
  type EventId,
  type ObjectId,
  type RepositoryId,
  type Timestamp,
  type WebhookDeliveryId,
  type WebhookId,
  timestamp,
  ZERO_OBJECT_ID,
} from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { LastUse } from '../../core/ports/last-use.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import type { StoredRefUpdate } from '../../core/repository/events.ts';
import { repositories } from '../../core/repository/evolve.ts';
import { createAccessToken } from '../../core/use-cases/accounts/access-tokens.ts';
import { createAccount } from '../../core/use-cases/accounts/accounts.ts';
import { createEntities } from '../../core/runtime/entities.ts';
import { createRepository, type FoundRepository } from '../../core/use-cases/accounts/repositories.ts';
import { pingWebhook } from '../../core/use-cases/webhooks/webhook-deliveries.ts';
import { createWebhook, deleteWebhook, listWebhooks } from '../../core/use-cases/webhooks/webhooks.ts';
import { createTransferMeter } from '../../core/use-cases/transfer-meter.ts';
import { createMemoryObjects, type MemoryObjects } from './memory/object-database.ts';
import { createMemoryReadModels, type MemoryReadModels } from './memory/read-models.ts';

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
  readonly readModels: MemoryReadModels;
  readonly vault: Vault;
  /** Everything logged, one JSON text a line. */
  readonly logged: string[];
  readonly finished: FinishedApiRequest[];
  account(username: string, plan?: Plan): Promise<AccountId>;
  /** ALL and ALL_REPO unless told otherwise. */
  token(account: AccountId, settings?: Partial<AccessTokenSettings>): Promise<TestToken>;
  repository(account: AccountId, name: string, defaultBranch?: string): Promise<FoundRepository>;
  /** The only webhook of the account: those it has are deleted. */
  webhook(account: AccountId): Promise<WebhookId>;
  /** A delivery to the webhook: of a ping. */
  delivery(account: AccountId, webhook: WebhookId): Promise<WebhookDeliveryId>;
  /** Moves refs as a push does: null deletes. */
  push(repository: FoundRepository, updates: Readonly<Record<string, ObjectId | null>>): Promise<void>;
  /** A request with a token; `body` is sent as JSON. */
  request(
    method: NonNullable<InjectOptions['method']>,
    url: string,
    token: TestToken | null,
    options?: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<LightMyRequestResponse>;
  /** Listens on a free port of the loopback, and says which. */
  listen(): Promise<number>;
  close(): Promise<void>;
}

export interface FixtureOptions {
  readonly plans?: Plans;
  readonly timeouts?: Timeouts;
  /** Puts something between the program and its log. */
  readonly wrapEvents?: (events: EventStore) => EventStore;
  /** Called before each read of branches or commits from the model: a push may come between. */
  readonly beforeRead?: () => Promise<void>;
  readonly objects?: (objects: MemoryObjects) => ApiContext['objects'];
  /** Told of the steps of a use case; may throw, as a process that dies there. */
  readonly reach?: ApiContext['reach'];
}

const CAUSE: Cause = {
  actor: { kind: 'admin', id: 'test' },
  requestId: 'test',
  sourceAddressRef: null,
  causationId: null,
};

export async function createApiFixture(options: FixtureOptions = {}): Promise<ApiFixture> {
  const clock = createTestClock();
  const log = createMemoryEventStore();
  const events = options.wrapEvents?.(log) ?? log;
  const objects = createMemoryObjects();
  const readModels = createMemoryReadModels({ events: log, digest, findCommit: objects.find });
  const logged: string[] = [];
  const finished: FinishedApiRequest[] = [];
  const write = (fields: object, message: string): void => {
    logged.push(JSON.stringify({ ...fields, message }));
  };
  const entities = createEntities({
    events,
    snapshots: createMemorySnapshots(),
    complete: async (event) => event,
    cacheSizeBytesMax: 16 * 1024 * 1024,
    onFault: (what, cause) => write({ what, cause: String(cause) }, 'fault'),
    gather: async () => undefined,
  });
  await entities.start();
  const vault = createMemoryVault();
  const base = { events, entities, clock, ids: uuids, reach: options.reach ?? (async () => undefined) };
  const context: ApiContext = {
    ...base,
    digest,
    plans: options.plans ?? DEFAULT_PLANS,
    vault,
    deliveries: createMemoryDeliveryStore(),
    outgoing: createHttpEgress({
      ownUrls: ['http://localhost:8080', 'https://git.example.org'],
      privateAllowed: false,
      // Every name leads to one public address, but those that say where they lead.
      lookup: async (name) => ({
        addresses: [/^to-([\d-]+)\./.exec(name)?.[1]?.replaceAll('-', '.') ?? '93.184.216.34'],
      }),
    }),
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
    lastUse: createMemoryLastUse(clock),
    transfer: createTransferMeter(base, 'test'),
    newTokenSecret,
    newUserCode,
    newDeviceSecret,
    newWebhookSecret,
    clientAddress: (request) => request.socket.remoteAddress ?? '',
    sourceAddressRef: async () => null,
    addresses: () => ({ baseUrl: 'http://localhost:8080', webUrl: 'http://localhost:8080' }),
    version: '0.0.0',
    log: { info: write, warn: write, error: write },
    onFinished: (request) => finished.push(request),
  };
  const app = createApi(context, options.timeouts === undefined ? {} : { timeouts: options.timeouts });
  await app.ready();
  const passwords = { hash: async () => 'hash', verify: async () => false };

  return {
    app,
    context,
    clock,
    objects,
    readModels,
    vault,
    logged,
    finished,
    account: async (username, plan = 'PRO') => {
      const wanted = { username, email: `${username}@example.org`, password: 'a long password', plan };
      return accepted(await createAccount({ ...base, vault, passwords }, CAUSE, wanted)).id;
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
    webhook: async (account) => {
      const origin = { account, cause: CAUSE };
      for (const { webhook } of await listWebhooks(context, account)) {
        accepted(await deleteWebhook(context, origin, webhook.id));
      }
      const wanted = { url: 'https://receiver.example/hook', events: ['push'], active: true } as const;
      return accepted(await createWebhook(context, origin, wanted, newWebhookSecret())).webhook.id;
    },
    delivery: async (account, webhook) =>
      accepted(await pingWebhook(context, { account, cause: CAUSE }, webhook)).deliveryId,
    push: (repository, updates) => appendPush(context, objects, repository, updates),
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

async function appendPush(
  context: ApiContext,
  objects: MemoryObjects,
  { id, accountId }: { readonly id: RepositoryId; readonly accountId: AccountId },
  changes: Readonly<Record<string, ObjectId | null>>,
): Promise<void> {
  const entity = await context.entities.reload(repositories, id);
  if (entity.state.status === 'closed') throw new Error('The fixture pushed to a closed repository');
  const { refs } = entity.state;
  const updates = Object.entries(changes).map(([ref, after]): StoredRefUpdate => {
    const before = refs.get(refName(ref))?.id ?? null;
    const peeled = after === null ? null : objects.peel(after);
    return {
      ref,
      before: before ?? ZERO_OBJECT_ID,
      after: after ?? ZERO_OBJECT_ID,
      type: after === null ? null : (objects.typeOf(after) ?? 'commit'),
      peeled: peeled === after ? null : peeled,
      kind: after === null ? 'delete' : before === null ? 'create' : 'force-push',
    };
  });
  const data = {
    push_id: context.ids.next(),
    updates,
    parts: null,
    layer: null,
    push_options: [],
    refused: 0,
    received_bytes: 1_000,
  };
  const result = await context.events.append({
    stream: streamName('repository', id),
    expected: entity.revision,
    events: [
      {
        ...CAUSE,
        id: context.ids.next<EventId>(),
        type: 'RefsUpdated',
        version: 1,
        accountId,
        occurredAt: context.clock.now(),
        data,
      },
    ],
  });
  if (result.outcome !== 'appended') throw new Error('The fixture lost a race');
}

function createTestClock(): TestClock {
  let now = Date.parse('2026-11-21T10:00:00.000Z');
  return {
    now: () => timestamp(new Date(now).toISOString()),
    monotonicMs: () => now,
    advance: (ms) => {
      now += ms;
    },
  };
}

function createMemoryLastUse(clock: Clock): LastUse {
  const uses = new Map<AccessTokenId, Timestamp>();
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
