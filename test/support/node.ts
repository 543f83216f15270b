/** One node over an event log: the cache of entities and everything else that use cases need. */
import { digest } from '../../adapters/node/digest.ts';
import { uuids } from '../../adapters/node/ids.ts';
import { settledWithin } from '../../adapters/node/pause.ts';
import { spellDomain } from '../../adapters/node/spell-domain.ts';
import { createBackground } from '../../apps/server/behind-answers.ts';
import { DEFAULT_PLANS, type Plans } from '../../core/account/plans.ts';
import type { Digest } from '../../core/kernel/digest.ts';
import type { SpellDomain } from '../../core/kernel/domain-spellings.ts';
import type { Cause } from '../../core/kernel/envelope.ts';
import type { Background } from '../../core/ports/background.ts';
import type { BucketFindingRows } from '../../core/ports/bucket-findings.ts';
import type { SettledWithin } from '../../core/ports/clock.ts';
import type { DeliveryStore } from '../../core/ports/delivery-store.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Failpoint } from '../../core/ports/failpoints.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { PasskeyChallenges } from '../../core/ports/passkey-challenges.ts';
import type { PasswordHasher } from '../../core/ports/password-hasher.ts';
import type { RateLimits } from '../../core/ports/rate-limits.ts';
import type { RefusedExchanges } from '../../core/ports/refused-exchanges.ts';
import { NEWEST_FORMS } from '../../core/ports/running-processes.ts';
import type { SessionStore } from '../../core/ports/session-store.ts';
import type { Snapshots } from '../../core/ports/snapshots.ts';
import type { Vault } from '../../core/ports/vault.ts';
import type { WaitingDeliveries } from '../../core/ports/waiting-deliveries.ts';
import type { WebhookBudgets } from '../../core/ports/webhook-budgets.ts';
import { createEntities, type EntitiesOptions } from '../../core/runtime/entities.ts';
import type { Context } from '../../core/runtime/execute.ts';
import { withUpdatesInPlace } from '../../core/use-cases/pushing/restore-wide-updates.ts';
import { createMemoryBucketFindings } from './memory/bucket-findings.ts';
import { createMemoryDeliveryStore } from './memory/delivery-store.ts';
import { createMemoryLayerStore } from './memory/layer-store.ts';
import { createMemoryPasskeyChallenges } from './memory/passkey-challenges.ts';
import { createMemoryRateLimits } from './memory/rate-limits.ts';
import { createMemoryRefusedExchanges } from './memory/refused-exchanges.ts';
import { createMemorySessionStore } from './memory/session-store.ts';
import { createMemorySnapshots } from './memory/snapshots.ts';
import { createMemoryVault } from './memory/vault.ts';
import { createMemoryWaitingDeliveries, createMemoryWebhookBudgets } from './memory/webhook-budgets.ts';
import { createTestClock, type TestClock } from './test-clock.ts';

export const CAUSE: Cause = {
  actor: { kind: 'admin', id: 'test' },
  requestId: 'request-1',
  sourceAddressRef: null,
  causationId: null,
};

export interface TestNode extends Context {
  readonly clock: TestClock;
  readonly digest: Digest;
  readonly vault: Vault;
  readonly spellDomain: SpellDomain;
  readonly passwords: PasswordHasher;
  readonly plans: Plans;
  readonly rateLimits: RateLimits;
  readonly refusedExchanges: RefusedExchanges;
  readonly bucketFindings: BucketFindingRows;
  readonly deliveries: DeliveryStore;
  readonly sessions: SessionStore;
  readonly challenges: PasskeyChallenges;
  readonly budgets: WebhookBudgets;
  readonly waiting: WaitingDeliveries;
  readonly platformStore: LayerStore;
  readonly background: Background & { settled(): Promise<void> };
  readonly settledWithin: SettledWithin;
  readonly failpoint: Failpoint;
  /** The faults that the entities reported, in order. */
  readonly faults: { readonly what: Parameters<EntitiesOptions['onFault']>[0]; readonly cause: unknown }[];
}

export interface NodeOptions {
  readonly clock?: TestClock;
  readonly snapshots?: Snapshots;
  readonly vault?: Vault;
  readonly rateLimits?: RateLimits;
  readonly cacheSizeBytesMax?: number;
  readonly complete?: EntitiesOptions['complete'];
}

/** Starts a node; it follows the log until the log ends its subscriptions. */
export async function startNode(events: EventStore, options: NodeOptions = {}): Promise<TestNode> {
  const faults: TestNode['faults'] = [];
  const entities = createEntities({
    events,
    snapshots: options.snapshots ?? createMemorySnapshots(),
    complete: options.complete ?? ((event) => withUpdatesInPlace({ events, digest }, event)),
    cacheSizeBytesMax: options.cacheSizeBytesMax ?? 16 * 1024 * 1024,
    onFault: (what, cause) => faults.push({ what, cause }),
    gather: async () => undefined,
  });
  await entities.start();
  const clock = options.clock ?? createTestClock();
  return {
    events,
    entities,
    clock,
    ids: uuids,
    written: NEWEST_FORMS,
    digest,
    vault: options.vault ?? createMemoryVault(),
    spellDomain,
    passwords: {
      expectRoom: () => undefined,
      hash: async (password) => `hash of ${password}`,
      verify: async (password, hash) => hash === `hash of ${password}`,
    },
    plans: DEFAULT_PLANS,
    rateLimits: options.rateLimits ?? createMemoryRateLimits(clock),
    refusedExchanges: createMemoryRefusedExchanges(),
    bucketFindings: createMemoryBucketFindings(),
    deliveries: createMemoryDeliveryStore(),
    sessions: createMemorySessionStore(),
    challenges: createMemoryPasskeyChallenges(),
    budgets: createMemoryWebhookBudgets(),
    waiting: createMemoryWaitingDeliveries(),
    platformStore: createMemoryLayerStore(),
    background: createBackground((_what, cause) => {
      throw cause;
    }),
    settledWithin,
    failpoint: async () => undefined,
    faults,
  };
}
