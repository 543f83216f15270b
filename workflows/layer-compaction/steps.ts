/**
 * The step of a compaction: it drops what is due to be dropped, and merges the small layers.
 *
 * Must stay true: a process makes few compactions at once, whatever the engine starts, and no account has all of them.
 */
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import { type RepositoryId, type Timestamp, uuid } from '../../core/kernel/ids.ts';
import { COMPACTIONS_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import type { CompactionStep, LayerCompactions } from '../../core/ports/layer-compactions.ts';
import type { LayerDrops } from '../../core/ports/layer-drops.ts';
import type { LayerMerges } from '../../core/ports/layer-merges.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import { type CompactionContext, compactLayers } from '../../core/use-cases/compacting/compact-layers.ts';
import { createDrops, type DropsContext } from './drops.ts';

export interface CompactionStepsContext extends CompactionContext, DropsContext {
  readonly objects: LayerMerges & LayerDrops;
  readonly compactions: LayerCompactions;
}

export function createCompactionSteps(context: CompactionStepsContext): StepActions<CompactionStep> {
  const slots = createFairSlots({ slots: COMPACTIONS_AT_ONCE_MAX, slotsPerKey: 1 });
  const drop = createDrops(context);
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
