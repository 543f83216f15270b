/** A repository that can be pushed to, on a node with a log, layers and objects that a test can hold back and fail. */
import { DEFAULT_PLANS, type PlanQuotas } from '../../core/account/plans.ts';
import { permits } from '../../core/kernel/grants.ts';
import type { RepositoryId } from '../../core/kernel/ids.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { FailpointName } from '../../core/ports/failpoints.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { AccountUsage } from '../../core/ports/usage.ts';
import { repositories } from '../../core/repository/evolve.ts';
import type { OpenRepository } from '../../core/repository/state.ts';
import { guardedBy } from '../../core/use-cases/callers/authenticate.ts';
import { grantsOf } from '../../core/use-cases/callers/principal.ts';
import { type Push, type PushContext, type PushOutcome, pushRefs } from '../../core/use-cases/pushing/push-refs.ts';
import { findRepositoryById } from '../../core/use-cases/repositories/repositories.ts';
import { authenticate, newAccount, newRepository, newToken } from './accounts.ts';
import { createFakeObjects, type FakeObjects } from './fake-objects.ts';
import { layersIn } from './layers-in.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { CAUSE, type NodeOptions, startNode, type TestNode } from './node.ts';
import { newBucket, newRepositoryIn } from './stored-buckets.ts';
import { type WatchedLog, watchLog } from './watched-log.ts';

export interface Pushing {
  readonly log: WatchedLog;
  readonly node: TestNode;
  readonly context: PushContext;
  readonly objects: FakeObjects;
  readonly layers: LayerStore;
  readonly account: Awaited<ReturnType<typeof newAccount>>;
  readonly tokenId: Awaited<ReturnType<typeof newToken>>['id'];
  readonly repository: RepositoryId;
  /** The account's usage, as the projection would report it. */
  readonly used: { -readonly [Sum in keyof AccountUsage]: AccountUsage[Sum] };
  /** Called at each named step of a push. */
  onFailpoint: (point: FailpointName) => Promise<void> | void;
  /** Called before the push stores a layer. */
  onPut: () => Promise<void> | void;
  /** Pushes as a request does: after a barrier, authenticates and looks up the repository. */
  push(commands: Push['commands'], more?: Partial<Push>): Promise<PushOutcome>;
  /** The refs as this node shows them after a barrier. */
  refs(): Promise<Readonly<Record<string, string>>>;
  state(): Promise<OpenRepository>;
  layerKeys(): Promise<string[]>;
  eventTypes(): Promise<string[]>;
}

export async function* onePack(): AsyncGenerator<Uint8Array> {
  yield new Uint8Array(32);
}

export async function startPushing(
  options: {
    readonly defaultBranch?: string;
    readonly expiresAfterMs?: number;
    readonly node?: NodeOptions;
    /** Default: a new one in memory. */
    readonly log?: EventStore;
    readonly inBucket?: boolean;
  } = {},
): Promise<Pushing> {
  const log = watchLog(options.log);
  const node = await startNode(log, options.node);
  const account = await newAccount(node, 'ada');
  const { id: repository } =
    options.inBucket === true
      ? await newRepositoryIn(node, account, await newBucket(node, account, 'own'), 'r')
      : await newRepository(node, account, 'r', options.defaultBranch ?? null);
  const expiresAt = options.expiresAfterMs === undefined ? null : inTime(node, options.expiresAfterMs);
  const { id: tokenId, secret } = await newToken(node, account, { grants: ['GIT_HTTP_WRITE'], expiresAt });
  const objects = createFakeObjects();
  const memory = createMemoryLayerStore();
  const layers: LayerStore = {
    ...memory,
    put: async (...given) => {
      await pushing.onPut();
      return memory.put(...given);
    },
  };
  const used = { storageBytes: 0, transferBytes: 0, ingressBytes: 0 };
  const context: PushContext = {
    ...node,
    layers: layersIn(layers),
    objects: objects.database,
    onLayer: () => undefined,
    usage: { usageOf: async () => ({ ...used }) },
    failpoint: async (point) => pushing.onFailpoint(point),
  };
  const state = async (): Promise<OpenRepository> => {
    await node.entities.barrier();
    const entity = await node.entities.get(repositories, repository);
    if (entity.state.status === 'closed') throw new Error('The repository is closed');
    return entity.state;
  };
  const pushing: Pushing = {
    log,
    node,
    context,
    objects,
    layers,
    account,
    tokenId,
    repository,
    used,
    onFailpoint: () => undefined,
    onPut: () => undefined,
    push: async (commands, more = {}) => {
      await node.entities.barrier();
      const principal = await authenticate(node, secret);
      const found = await findRepositoryById(node, account, repository);
      if (principal === null || found === null)
        throw new Error('The token or the repository of this push does not exist');
      return pushRefs(context, {
        repository: found,
        quotas: DEFAULT_PLANS.PRO,
        cause: { ...CAUSE, actor: { kind: 'token', id: tokenId } },
        guarding: guardedBy(node, principal, (now) => permits(grantsOf(now), 'GIT_HTTP_WRITE')),
        door: 'git',
        commands,
        refusedNames: 0,
        atomic: false,
        pushOptions: [],
        pack: commands.some(({ after }) => after !== null) ? onePack() : null,
        receivedBytes: () => 500,
        signal: new AbortController().signal,
        ...more,
      });
    },
    refs: async () => Object.fromEntries([...(await state()).refs.entries()].map(([name, { id }]) => [name, id])),
    state,
    layerKeys: () => Array.fromAsync(memory.list(''), ({ key }) => key),
    eventTypes: async () => {
      const { stream } = await node.entities.get(repositories, repository);
      const events = await log.readStream(stream, { direction: 'forwards', limit: 10_000 });
      return events.map(({ type }) => type);
    },
  };
  return pushing;
}

function inTime({ clock }: TestNode, ms: number) {
  clock.advance(ms);
  const at = clock.now();
  clock.advance(-ms);
  return at;
}

/** The quotas of an account limited to this much storage and ingress. */
export function quotasOf(storage: number | null, ingress: number | null): PlanQuotas {
  return { ...DEFAULT_PLANS.FREE, storage_bytes: storage, ingress_bytes: ingress };
}
