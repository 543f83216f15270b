/**
 * The step of a compaction: it drops what is due to be dropped, and merges the small layers.
 *
 * Must stay true: a process makes few compactions at once, whatever the engine starts, and no account has all of them.
 * After a drop that failed the repository is read again after hours, not at every look.
 */
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import { plusMs, type RepositoryId, type Timestamp, uuid } from '../../core/kernel/ids.ts';
import { COMPACTIONS_AT_ONCE_MAX, DROPPING_RETRY_MS } from '../../core/kernel/limits.ts';
import type { CompactionStep, LayerCompactions, WantedCompaction } from '../../core/ports/layer-compactions.ts';
import type { LayerDrops } from '../../core/ports/layer-drops.ts';
import type { LayerMerges } from '../../core/ports/layer-merges.ts';
import type { Log } from '../../core/ports/log.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import { type CompactionContext, compactLayers } from '../../core/use-cases/compacting/compact-layers.ts';
import { type DroppingContext, dropUnreached } from '../../core/use-cases/compacting/drop-unreached.ts';

export interface CompactionStepsContext extends CompactionContext, Omit<DroppingContext, 'objects'> {
  readonly objects: LayerMerges & LayerDrops;
  readonly compactions: LayerCompactions;
  readonly log: Log;
}

/** Repositories remembered whose objects could not be dropped; the oldest is forgotten first, and tried earlier. */
const POSTPONED_MAX = 1_000;

export function createCompactionSteps(context: CompactionStepsContext): StepActions<CompactionStep> {
  const slots = createFairSlots({ slots: COMPACTIONS_AT_ONCE_MAX, slotsPerKey: 1 });
  const drop = createDropping(context);
  return {
    compact: async ({ id, revision }, signal) => {
      const repository = uuid<RepositoryId>(id);
      const wanted = await context.compactions.find(repository);
      if (wanted === null) return;
      const done = await slots.acquire(wanted.account);
      let againAt: Timestamp | null;
      try {
        againAt = await drop(wanted, signal);
        // One compaction may be bounded by its bytes, so the next one may find more to merge.
        while ((await compactLayers(context, wanted, signal)) === 'compacted') signal.throwIfAborted();
      } finally {
        done();
      }
      await context.compactions.done(repository, revision);
      if (againAt !== null) await context.compactions.want(wanted, againAt);
    },
  };
}

/** Returns a function that drops what is due, and returns when it is to be tried again; null if that is not needed. */
function createDropping(context: CompactionStepsContext) {
  const { clock, log } = context;
  const postponed = new Map<RepositoryId, Timestamp>();
  // Each try may read and write the whole repository.
  const postpone = (repository: RepositoryId): Timestamp => {
    const againAt = plusMs(clock.now(), DROPPING_RETRY_MS);
    const [oldest] = postponed.keys();
    if (postponed.size >= POSTPONED_MAX && oldest !== undefined) postponed.delete(oldest);
    postponed.set(repository, againAt);
    return againAt;
  };
  return async (wanted: WantedCompaction, signal: AbortSignal): Promise<Timestamp | null> => {
    const { repository } = wanted;
    const until = postponed.get(repository);
    if (until !== undefined && clock.now() < until) return until;
    postponed.delete(repository);
    try {
      if ((await dropUnreached(context, wanted, signal)) !== 'lost') return null;
      log.warn({ repository }, 'What no ref reaches was not dropped: pushes or another compaction were faster');
      return postpone(repository);
    } catch (error) {
      const againAt = postpone(repository);
      // The engine stops, or its time for a step is over.
      if (signal.aborted) throw error;
      log.warn({ err: error, repository }, 'What no ref reaches could not be dropped');
      return againAt;
    }
  };
}
