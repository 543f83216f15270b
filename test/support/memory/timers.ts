/** The in-memory counterpart of the timers projection: folds from the log what each workflow run waits for. */
import { categoryOf, entityIdOf, LOG_START } from '../../../core/kernel/envelope.ts';
import type { EventStore } from '../../../core/ports/event-store.ts';
import type { Timer, Timers, Wait, Workflow } from '../../../core/ports/workflows.ts';

export function createMemoryTimers(events: Pick<EventStore, 'readAll'>, workflows: readonly Workflow[]): Timers {
  return {
    caughtUp: async () => undefined,
    earliest: async (name, limit) => {
      const workflow = workflows.find((one) => one.name === name);
      const runs = new Map<string, { readonly revision: number; readonly wait: Wait | null }>();
      for (const event of await events.readAll(LOG_START, Number.MAX_SAFE_INTEGER)) {
        if (workflow === undefined || categoryOf(event.stream) !== workflow.category) continue;
        const id = entityIdOf(event.stream);
        runs.set(id, { revision: event.revision, wait: workflow.next(runs.get(id)?.wait ?? null, event) });
      }
      return [...runs]
        .flatMap(([id, { revision, wait }]): Timer[] =>
          wait === null ? [] : [{ id, revision, step: wait.step, dueAt: wait.dueAt }],
        )
        .toSorted((a, b) => (a.dueAt < b.dueAt ? -1 : 1))
        .slice(0, limit);
    },
  };
}
