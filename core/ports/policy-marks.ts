/**
 * How far each policy has read the log: one checkpoint for each.
 *
 * Invariants: a checkpoint names an event of the log, so that a policy can tell whether the log is still the one
 * that it read before.
 */
import type { ReadMark } from './read-mark.ts';

export interface PolicyMarks {
  /** Returns the policy's checkpoint; null before the first was saved. */
  read(policy: string): Promise<ReadMark | null>;
  /** Saves the policy's checkpoint. It may move back, when the policy found another log. */
  save(policy: string, mark: ReadMark): Promise<void>;
}
