/** Workflow steps of a worker that a test kills. */
import type { CarriedOutWorkflow } from '../../core/ports/workflows.ts';

/** Wraps the steps so that they reject, and record nothing, as soon as their worker is dead. */
export function killable({ workflow, steps }: CarriedOutWorkflow, dead: AbortSignal): CarriedOutWorkflow {
  const died = new Promise<never>((_resolve, reject) => {
    dead.addEventListener('abort', () => reject(new Error('The worker died')), { once: true });
  });
  died.catch(() => undefined);
  return {
    workflow,
    steps: Object.fromEntries(
      Object.entries(steps).map(([name, action]) => [name, (due, signal) => Promise.race([action(due, signal), died])]),
    ),
  };
}
