/**
 * The writing of manifests as a workflow: each row is one repository that changed.
 *
 * Invariants: no answer to a user depends on it. While an engine or a store is down, manifests are behind the log,
 * and nothing else is.
 */
import type { ManifestStep } from '../../core/ports/manifest-writes.ts';
import type { RowWorkflow, WaitingRows } from '../../core/ports/workflows.ts';

const LOOK_MS = 2_000;

export function manifestWriting(rows: WaitingRows<ManifestStep>): RowWorkflow<ManifestStep> {
  return { name: 'manifest-writing', version: 1, rows, lookMs: LOOK_MS };
}
