/** How a run stands: its stream, folded by the workflow's own `next`. */
import { streamName } from '../../core/kernel/envelope.ts';
import { msBetween } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Wait, Workflow } from '../../core/ports/workflows.ts';
import type { Standing } from './protocol.ts';

export interface LookContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly clock: Pick<Clock, 'now'>;
}

const PAGE_EVENTS_MAX = 500;

/** By the log as it is now. Rejects with `EventStoreError`, or with what `next` throws at an event it cannot read. */
export async function lookAt({ events, clock }: LookContext, workflow: Workflow, id: string): Promise<Standing> {
  const stream = streamName(workflow.category, id);
  let wait: Wait | null = null;
  let revision = -1;
  for (;;) {
    const page = await events.readStream(stream, {
      direction: 'forwards',
      from: revision + 1,
      limit: PAGE_EVENTS_MAX,
    });
    for (const event of page) {
      wait = workflow.next(wait, event);
      revision = event.revision;
    }
    if (page.length < PAGE_EVENTS_MAX) break;
  }
  const { version } = workflow;
  if (wait === null) return { revision, version, wait };
  const { step, dueAt } = wait;
  return { revision, version, wait: { step, dueAt, restMs: msBetween(clock.now(), dueAt) } };
}
