/** Reads the state of a run: folds its stream with the workflow's own `next`, or reads its row. */
import { streamName } from '../../core/kernel/envelope.ts';
import { msBetween } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { RowWorkflow, Wait, Workflow } from '../../core/ports/workflows.ts';
import type { RunState } from './protocol.ts';

export interface RunStateContext {
  readonly events: Pick<EventStore, 'readStream'>;
  readonly clock: Pick<Clock, 'now'>;
}

/** Events that are read together. Internal: the rest is read in further pages. */
const PAGE_EVENTS_MAX = 500;

/**
 * Reads the log or the table as it is now. Rejects with `EventStoreError`, with the table's error, or with the error of
 * `next` for an event it cannot read.
 */
export async function readRunState(
  context: RunStateContext,
  workflow: Workflow | RowWorkflow,
  id: string,
): Promise<RunState> {
  return 'rows' in workflow ? readRow(context, workflow, id) : readStream(context, workflow, id);
}

/** A row that is gone waits for nothing. */
async function readRow({ clock }: RunStateContext, { rows, version }: RowWorkflow, id: string): Promise<RunState> {
  const timer = await rows.waitOf(id);
  if (timer === null) return { revision: -1, version, wait: null };
  const { revision, step, dueAt } = timer;
  return { revision, version, wait: { step, dueAt, restMs: msBetween(clock.now(), dueAt) } };
}

async function readStream({ events, clock }: RunStateContext, workflow: Workflow, id: string): Promise<RunState> {
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
