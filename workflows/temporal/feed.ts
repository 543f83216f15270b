/**
 * Notifies Temporal of events: signals each run whose stream moved, and starts the run if its stream waits for
 * something. Sweeps the tables of workflows on rows, and starts the runs of rows that this server was not told of.
 *
 * Invariants: the saved mark is before the oldest event that Temporal was not notified of, so no event is lost if a
 * process dies; a repeated notice changes nothing. An unreachable Temporal delays only this feed, for as long as it
 * lasts.
 */
import { untilAborted } from '../../core/kernel/aborted.ts';
import { categoryOf, entityIdOf, LOG_START, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock, Pause } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Lead } from '../../core/ports/lead.ts';
import type { Log } from '../../core/ports/log.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { ReadMark } from '../../core/ports/read-mark.ts';
import type { RowWorkflow, Workflow } from '../../core/ports/workflows.ts';
import { isOutage } from '../../core/runtime/is-outage.ts';
import { markAfter, provenMark } from '../../core/runtime/read-mark.ts';
import { untilDone } from '../../core/runtime/until-done.ts';
import { type Moved, type RunName, runIdOf } from './protocol.ts';
import { readRunState } from './read-run-state.ts';
import type { TemporalServer } from './server.ts';
import type { Signals } from './signals.ts';

export interface FeedOptions {
  readonly workflows: readonly Workflow[];
  readonly rowWorkflows: readonly RowWorkflow[];
  readonly events: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  readonly lead: Lead;
  readonly marks: PolicyMarks;
  readonly clock: Pick<Clock, 'now'>;
  readonly pause: Pause;
  readonly server: Pick<TemporalServer, 'identify'>;
  readonly signals: Signals;
  readonly log: Log;
  readonly onFault: (workflow: string, cause: unknown) => void;
}

export interface Behind {
  /** The number of runs, at least, with events that Temporal was not notified of. */
  readonly runs: number;
  /** The time of the oldest of these events; null for none. */
  readonly oldestAt: Timestamp | null;
}

export interface Feed {
  /** Returns null if this process does not notify Temporal. */
  behind(): Behind | null;
  close(): Promise<void>;
}

/** Notices sent concurrently. Internal: further notices wait. */
const NOTICES_AT_ONCE_MAX = 16;
/** Rows read at a time, and the pause after a sweep that found no more. Internal: it is the pace of background work. */
const ROWS_MAX = 200;
const ROWS_PAUSE_MS = 5_000;

/** The newest event of one run among events that arrived together. */
interface Notice {
  readonly workflow: Workflow;
  readonly event: RecordedEvent;
  /** The time of the run's oldest event among them. */
  readonly firstAt: Timestamp;
}

/** Starts notifying Temporal, in the one process that leads. */
export function startFeed(options: FeedOptions): Feed {
  const pending = new Set<Notice>();
  let leads = false;
  const close = options.lead.whenever('workflows', async (signal) => {
    leads = true;
    try {
      await follow(options, pending, signal);
    } finally {
      leads = false;
      pending.clear();
    }
  });
  return {
    behind: () => (leads ? { runs: pending.size, oldestAt: oldestOf(pending) } : null),
    close,
  };
}

function oldestOf(pending: ReadonlySet<Notice>): Timestamp | null {
  let oldest: Timestamp | null = null;
  for (const { firstAt } of pending) if (oldest === null || firstAt < oldest) oldest = firstAt;
  return oldest;
}

/** Runs until the signal, or until another server replaces this one. Rejects if the log or the marks cannot be read. */
async function follow(options: FeedOptions, pending: Set<Notice>, signal: AbortSignal): Promise<void> {
  const { events, marks, workflows } = options;
  const server = await untilTold(options, signal, () => options.server.identify());
  if (server === null) return;
  const ended = AbortSignal.any([signal, server.replaced]);
  const policy = policyOf(server.id, workflows);
  const { mark: start, skipEndedUpTo } = await readStart(options, policy);
  let mark = start;
  const ending = new AbortController();
  const sweeping = tellRows(options, server.id, AbortSignal.any([ended, ending.signal]));
  const subscription = events.subscribe({
    after: start?.position ?? LOG_START,
    categories: [...new Set(workflows.map(({ category }) => category))],
    onEvents: async (batch, position, lastRecord) => {
      if (ended.aborted) return;
      const next = markAfter(mark, position, lastRecord);
      mark = next;
      if (batch.length === 0) return;
      for (const notice of noticesOf(workflows, batch)) pending.add(notice);
      await notifyAll(options, pending, skipEndedUpTo, ended);
      if (ended.aborted) return;
      if (next !== null) await untilTold(options, ended, () => marks.save(policy, next));
    },
  });
  try {
    await untilAborted(ended, Promise.race([subscription.closed, sweeping]));
  } finally {
    ending.abort();
    await Promise.allSettled([subscription.close(), sweeping]);
  }
}

/** Sweeps until the signal: an emptied server has another id, so it is told of every row again. */
async function tellRows(options: FeedOptions, serverId: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    for (const workflow of options.rowWorkflows) {
      const engine = `temporal/${serverId}/${workflow.version}`;
      let more = true;
      while (more && !signal.aborted) {
        more = (await untilTold(options, signal, () => tellSomeRows(options, workflow, engine))) === ROWS_MAX;
      }
    }
    await options.pause(ROWS_PAUSE_MS, signal);
  }
}

/** Resolves to the number of rows that the server was told of. */
async function tellSomeRows({ signals }: FeedOptions, { name, version, rows }: RowWorkflow, engine: string) {
  const untold = await rows.untold(engine, ROWS_MAX);
  const waiting = [...untold];
  const tellNext = async (): Promise<void> => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      await signals.signalWithStart({ workflow: name, id: row.id }, { revision: row.revision, version });
    }
  };
  await Promise.all(Array.from({ length: NOTICES_AT_ONCE_MAX }, tellNext));
  if (untold.length > 0) {
    const ids = untold.map(({ id }) => id);
    await rows.markTold(engine, ids);
  }
  return untold.length;
}

/** Names the mark. A new server, or a changed workflow, needs all notices again, and so has a mark of its own. */
function policyOf(serverId: string, workflows: readonly Workflow[]): string {
  const versions = workflows.map(({ name, version }) => `${name}.${version}`).sort();
  return `temporal/${serverId}/${versions.join(',')}`;
}

interface Start {
  /** Null for the log's start. */
  readonly mark: ReadMark | null;
  /** Events up to here need no notice if their run waits for nothing: this server never had the run. */
  readonly skipEndedUpTo: LogPosition;
}

async function readStart({ events, marks, log }: FeedOptions, policy: string): Promise<Start> {
  const mark = await marks.read(policy);
  const standing = mark === null ? null : await provenMark(events, mark);
  if (standing !== null) return { mark: standing, skipEndedUpTo: LOG_START };
  if (mark !== null) {
    const { stream, revision } = mark.record;
    log.warn(
      { stream, revision },
      'The log differs from the one that Temporal was notified of: the feed starts again from its start',
    );
  }
  return { mark: null, skipEndedUpTo: await events.head() };
}

function noticesOf(workflows: readonly Workflow[], batch: readonly RecordedEvent[]): readonly Notice[] {
  const notices = new Map<string, Notice>();
  for (const event of batch) {
    for (const workflow of workflows) {
      if (workflow.category !== categoryOf(event.stream)) continue;
      const key = runIdOf({ workflow: workflow.name, id: entityIdOf(event.stream) });
      notices.set(key, { workflow, event, firstAt: notices.get(key)?.firstAt ?? event.occurredAt });
    }
  }
  return [...notices.values()];
}

/** Resolves when all notices were sent, or the signal is aborted. */
async function notifyAll(
  options: FeedOptions,
  pending: Set<Notice>,
  skipEndedUpTo: LogPosition,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...pending];
  const sendNext = async (): Promise<void> => {
    for (let notice = waiting.shift(); notice !== undefined && !signal.aborted; notice = waiting.shift()) {
      const next = notice;
      if ((await untilTold(options, signal, () => notify(options, next, skipEndedUpTo))) !== null) pending.delete(next);
    }
  };
  await Promise.all(Array.from({ length: NOTICES_AT_ONCE_MAX }, sendNext));
}

async function notify(options: FeedOptions, { workflow, event }: Notice, skipEndedUpTo: LogPosition): Promise<void> {
  const run: RunName = { workflow: workflow.name, id: entityIdOf(event.stream) };
  const moved: Moved = { revision: event.revision, version: workflow.version };
  if (await isWaiting(options, workflow, run.id)) await options.signals.signalWithStart(run, moved);
  else if (event.position > skipEndedUpTo) await options.signals.signal(run, moved);
}

/**
 * Returns whether the run waits for something. Also true for an event that cannot be read: the run itself then reports
 * the failure, and delays no other run.
 */
async function isWaiting(options: FeedOptions, workflow: Workflow, id: string): Promise<boolean> {
  try {
    return (await readRunState(options, workflow, id)).wait !== null;
  } catch (error) {
    if (isOutage(error)) throw error;
    options.onFault(workflow.name, error);
    return true;
  }
}

/** Resolves null if the signal is aborted first. A fault after that is not reported. */
function untilTold<Answer>(
  { onFault, pause }: Pick<FeedOptions, 'onFault' | 'pause'>,
  signal: AbortSignal,
  attempt: () => Promise<Answer>,
): Promise<Answer | null> {
  const report = (error: unknown): void => {
    if (!signal.aborted) onFault('temporal', error);
  };
  return untilDone({ pause, onFault: report }, signal, attempt);
}
