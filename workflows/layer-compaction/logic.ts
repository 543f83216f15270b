/**
 * The compaction of a repository's layers as a workflow: each row is one repository that has many.
 *
 * Invariants: no answer to a user depends on it. An engine that is down costs reads time, and loses nothing.
 */
import type { CompactionStep } from '../../core/ports/layer-compactions.ts';
import type { RowWorkflow, WaitingRows } from '../../core/ports/workflows.ts';

/** Many pushes arrive in a second, and each leaves a layer. */
const LOOK_MS = 2_000;

export function layerCompaction(rows: WaitingRows<CompactionStep>): RowWorkflow<CompactionStep> {
  return { name: 'layer-compaction', version: 1, rows, lookMs: LOOK_MS };
}
