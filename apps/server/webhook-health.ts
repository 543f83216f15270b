/**
 * The health of webhooks in this process: whether it requests deliveries for pushes, and whether it attempts them.
 *
 * Invariants: a failed attempt concerns only its delivery, and degrades nothing.
 */
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import { createPartHealth, type PartHealth } from './readiness.ts';

export interface WebhookHealth extends Pick<PartHealth, 'isDegraded'> {
  /** Reports that the process cannot follow pushes now. */
  followingFails(): void;
  /** Reports that the process attempts deliveries. */
  sendingWorks(): void;
  /** Reports that the process cannot attempt deliveries now. */
  sendingFails(): void;
  /** Wraps the marks: each saved mark reports that following pushes works. */
  watched(marks: PolicyMarks): PolicyMarks;
}

export function createWebhookHealth(monotonicMs: () => number): WebhookHealth {
  const following = createPartHealth(monotonicMs);
  const sending = createPartHealth(monotonicMs);
  return {
    isDegraded: () => following.isDegraded() || sending.isDegraded(),
    followingFails: () => following.fails(),
    sendingWorks: () => sending.works(),
    sendingFails: () => sending.fails(),
    watched: (marks) => ({
      read: (policy) => marks.read(policy),
      save: async (policy, mark) => {
        await marks.save(policy, mark);
        following.works();
      },
    }),
  };
}
