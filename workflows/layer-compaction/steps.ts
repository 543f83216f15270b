/**
 * The step of a compaction.
 *
 * Must stay true: a process makes few compactions at once, whatever the engine starts.
 */
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import { type RepositoryId, uuid } from '../../core/kernel/ids.ts';
import { COMPACTIONS_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import type { CompactionStep, LayerCompactions } from '../../core/ports/layer-compactions.ts';
import type { StepActions } from '../../core/ports/workflows.ts';
import { type CompactionContext, compactLayers } from '../../core/use-cases/compacting/compact-layers.ts';

export interface CompactionStepsContext extends CompactionContext {
  readonly compactions: Pick<LayerCompactions, 'find' | 'done'>;
}

export function createCompactionSteps(context: CompactionStepsContext): StepActions<CompactionStep> {
  const slots = createFairSlots({ slots: COMPACTIONS_AT_ONCE_MAX, slotsPerKey: 1 });
  return {
    compact: async ({ id, revision }, signal) => {
      const repository = uuid<RepositoryId>(id);
      const wanted = await context.compactions.find(repository);
      if (wanted === null) return;
      const done = await slots.acquire(repository);
      try {
        // One compaction may be bounded by its bytes, so the next one may find more to merge.
        while ((await compactLayers(context, wanted, signal)) === 'compacted') signal.throwIfAborted();
      } finally {
        done();
      }
      await context.compactions.done(repository, revision);
    },
  };
}
