/**
 * The step of a compaction: it drops what is due to be dropped, and merges the small layers. What a closed account has
 * waits until the account is reopened or erased.
 *
 * Invariants: a process makes few compactions at a time, whatever the engine starts, and no account has all of them. A
 * bucket of a user that is dead or slow holds up the compactions of no other place.
 */
import { accounts } from '../../core/account/evolve.ts';
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import {
  type AccountId,
  later,
  plusMs,
  type RepositoryId,
  type StorageBucketId,
  type Timestamp,
  uuid,
} from '../../core/kernel/ids.ts';
import { COMPACTION_IDLE_MS } from '../../core/kernel/limits.ts';
import type { CompactionStep, LayerCompactions, WantedCompaction } from '../../core/ports/layer-compactions.ts';
import type { LayerDrops } from '../../core/ports/layer-drops.ts';
import type { LayerMerges } from '../../core/ports/layer-merges.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import {
  type CompactionContext,
  type CompactionOutcome,
  compactLayers,
} from '../../core/use-cases/compacting/compact-layers.ts';
import { findRepositoryById } from '../../core/use-cases/repositories/repositories.ts';
import { createDrops, type DropsContext } from './drops.ts';
import { DROPPING_RETRY_MS } from './limits.ts';

/** Compactions that one process makes at the same time: each takes a processor. Internal: further compactions wait. */
const COMPACTIONS_AT_ONCE_MAX = 2;
/**
 * Buckets of users in which a process compacts at the same time, one repository in each. Internal: further compactions
 * wait.
 */
export const BUCKET_COMPACTIONS_AT_ONCE_MAX = 4;

export interface CompactionStepsContext extends CompactionContext, DropsContext {
  readonly objects: LayerMerges & LayerDrops;
  readonly compactions: LayerCompactions;
}

export function createCompactionSteps(context: CompactionStepsContext): StepActions<CompactionStep> {
  const slots = createFairSlots({ slots: COMPACTIONS_AT_ONCE_MAX, slotsPerKey: 1 });
  const drop = createDrops(context);
  /** The buckets that a compaction is under way in. */
  const buckets = new Set<StorageBucketId>();
  /** Null: not now. The row stays, and the engine comes back to it. */
  const begin = async ({ account, repository }: WantedCompaction): Promise<(() => void) | null> => {
    const found = await findRepositoryById(context, account, repository);
    const bucket = found?.owned.storageBucketId ?? null;
    if (bucket === null) return slots.acquire(account);
    // Whoever waited here for a dead bucket would take a step of the engine.
    if (buckets.has(bucket) || buckets.size >= BUCKET_COMPACTIONS_AT_ONCE_MAX) return null;
    buckets.add(bucket);
    return () => buckets.delete(bucket);
  };
  return {
    compact: async ({ id, revision }, signal) => {
      const repository = uuid<RepositoryId>(id);
      const wanted = await context.compactions.find(repository);
      if (wanted === null) return;
      const done = await begin(wanted);
      if (done === null) return;
      let againAt: Timestamp | null;
      let hasChanged = false;
      try {
        ({ dropped: hasChanged, againAt } = await drop(wanted, signal));
        let outcome: CompactionOutcome;
        do {
          signal.throwIfAborted();
          outcome = await compactLayers(context, wanted, signal);
          hasChanged ||= outcome === 'compacted' || outcome === 'partly';
        } while (outcome === 'partly');
      } finally {
        done();
      }
      await context.compactions.done(repository, revision);
      // A push that came after the last look may have asked for nothing, because another had asked a moment before.
      if (hasChanged) await context.compactions.want(wanted, plusMs(context.clock.now(), COMPACTION_IDLE_MS));
      if (againAt !== null) await context.compactions.want(wanted, againAt);
      const closedUntil = await endOfClosing(context, wanted.account);
      if (closedUntil !== null) await context.compactions.want(wanted, closedUntil);
    },
  };
}

/** When the closing of an account has come to its end in either way; null if the account is not closed. */
async function endOfClosing(
  { entities, clock }: Pick<CompactionStepsContext, 'entities' | 'clock'>,
  account: AccountId,
): Promise<Timestamp | null> {
  const { state } = await entities.get(accounts, account);
  // Nobody asks again for what a closed account has: the events that would are passed.
  return state.status === 'closed' ? later(state.eraseAt, plusMs(clock.now(), DROPPING_RETRY_MS)) : null;
}
