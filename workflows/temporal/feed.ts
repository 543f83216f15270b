/**
 * Tells Temporal of events: each run whose stream moved gets a signal, and is begun where something is waited for.
 *
 * Must stay true: the mark stands before the oldest event that was not told, so none is lost whatever dies; what is told
 * twice changes nothing. Temporal being away holds up this alone, for as long as it lasts.
 */
import { aborted } from '../../core/kernel/aborted.ts';
import { categoryOf, entityIdOf, LOG_START, type LogPosition, type RecordedEvent } from '../../core/kernel/envelope.ts';
import type { Timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { Lead, Workflow } from '../../core/ports/workflows.ts';
import { isOutage } from '../../core/runtime/is-outage.ts';
import { markOf, standingPosition } from '../../core/use-cases/read-mark.ts';
import { lookAt } from './read-run-state.ts';
import { pause } from './pause.ts';
import { type Moved, type RunName, runIdOf } from './protocol.ts';
import type { TemporalServer } from './server.ts';
import type { Signals } from './signals.ts';

export interface FeedOptions {
  readonly workflows: readonly Workflow[];
  readonly events: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  readonly lead: Lead;
  readonly marks: PolicyMarks;
  readonly clock: Pick<Clock, 'now'>;
  readonly server: Pick<TemporalServer, 'standing'>;
  readonly signals: Signals;
  readonly log: Log;
  readonly onFault: (workflow: string, cause: unknown) => void;
}

export interface Behind {
  /** So many runs at least have events that Temporal was not told of. */
  readonly runs: number;
  /** When the oldest of these events happened; null for none. */
  readonly oldestAt: Timestamp | null;
}

export interface Feed {
  /** Null where this process does not tell. */
  behind(): Behind | null;
  close(): Promise<void>;
}

/** Runs that are told at once. */
const TOLD_AT_ONCE_MAX = 16;
const PAUSE_FIRST_MS = 100;
const PAUSE_LAST_MS = 5_000;

/** One run's newest event of those that came together. */
interface News {
  readonly workflow: Workflow;
  readonly event: RecordedEvent;
  /** Of the oldest of them. */
  readonly firstAt: Timestamp;
}

/** Begins to tell, in the one process that leads. */
export function startFeed(options: FeedOptions): Feed {
  const untold = new Set<News>();
  let leads = false;
  const close = options.lead.whenever('workflows', async (signal) => {
    leads = true;
    try {
      await follow(options, untold, signal);
    } finally {
      leads = false;
      untold.clear();
    }
  });
  return {
    behind: () => (leads ? { runs: untold.size, oldestAt: oldestOf(untold) } : null),
    close,
  };
}

function oldestOf(untold: ReadonlySet<News>): Timestamp | null {
  let oldest: Timestamp | null = null;
  for (const { firstAt } of untold) if (oldest === null || firstAt < oldest) oldest = firstAt;
  return oldest;
}

/** Until the signal, or until the server is another than it was. Rejects when the log or the marks cannot be read. */
async function follow(options: FeedOptions, untold: Set<News>, signal: AbortSignal): Promise<void> {
  const { events, marks, workflows } = options;
  const server = await untilDone(options, signal, () => options.server.standing());
  if (server === null) return;
  const ended = AbortSignal.any([signal, server.replaced]);
  const policy = policyOf(server.id, workflows);
  const { after, endedUpTo } = await startOf(options, policy);
  const subscription = events.subscribe({
    after,
    categories: [...new Set(workflows.map(({ category }) => category))],
    onEvents: async (batch) => {
      const last = batch.at(-1);
      if (last === undefined || ended.aborted) return;
      for (const news of newsOf(workflows, batch)) untold.add(news);
      await tellAll(options, untold, endedUpTo, ended);
      if (ended.aborted) return;
      await untilDone(options, ended, () => marks.save(policy, markOf(last)));
    },
  });
  try {
    await Promise.race([aborted(ended), subscription.closed]);
  } finally {
    await Promise.allSettled([subscription.close()]);
  }
}

/** Another server, or a workflow that answers otherwise, knows nothing of what was told before: it has its own mark. */
function policyOf(serverId: string, workflows: readonly Workflow[]): string {
  const versions = workflows.map(({ name, version }) => `${name}.${version}`).sort();
  return `temporal/${serverId}/${versions.join(',')}`;
}

interface Start {
  readonly after: LogPosition;
  /** Of what stands up to here, Temporal needs no word of runs that wait for nothing: it never had them. */
  readonly endedUpTo: LogPosition;
}

async function startOf({ events, marks, log }: FeedOptions, policy: string): Promise<Start> {
  const mark = await marks.read(policy);
  const after = mark === null ? null : await standingPosition(events, mark);
  if (after !== null) return { after, endedUpTo: LOG_START };
  if (mark !== null) {
    const { stream, revision } = mark;
    log.warn({ stream, revision }, 'The log is another than the one Temporal was told of: from its start');
  }
  return { after: LOG_START, endedUpTo: await events.head() };
}

function newsOf(workflows: readonly Workflow[], batch: readonly RecordedEvent[]): readonly News[] {
  const news = new Map<string, News>();
  for (const event of batch) {
    for (const workflow of workflows) {
      if (workflow.category !== categoryOf(event.stream)) continue;
      const key = runIdOf({ workflow: workflow.name, id: entityIdOf(event.stream) });
      news.set(key, { workflow, event, firstAt: news.get(key)?.firstAt ?? event.occurredAt });
    }
  }
  return [...news.values()];
}

/** Resolves when all were told, or the signal is aborted. */
async function tellAll(
  options: FeedOptions,
  untold: Set<News>,
  endedUpTo: LogPosition,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...untold];
  const tellNext = async (): Promise<void> => {
    for (let news = waiting.shift(); news !== undefined && !signal.aborted; news = waiting.shift()) {
      const next = news;
      if ((await untilDone(options, signal, () => tell(options, next, endedUpTo))) !== null) untold.delete(next);
    }
  };
  await Promise.all(Array.from({ length: TOLD_AT_ONCE_MAX }, tellNext));
}

async function tell(options: FeedOptions, { workflow, event }: News, endedUpTo: LogPosition): Promise<void> {
  const run: RunName = { workflow: workflow.name, id: entityIdOf(event.stream) };
  const moved: Moved = { revision: event.revision, version: workflow.version };
  if (await waits(options, workflow, run.id)) await options.signals.begin(run, moved);
  else if (event.position > endedUpTo) await options.signals.tell(run, moved);
}

/** Also where an event cannot be read: its own run then says so, and holds up no other. */
async function waits(options: FeedOptions, workflow: Workflow, id: string): Promise<boolean> {
  try {
    return (await lookAt(options, workflow, id)).wait !== null;
  } catch (error) {
    if (isOutage(error)) throw error;
    options.onFault(workflow.name, error);
    return true;
  }
}

/** Tries again and again, with growing pauses; null once the signal is aborted. */
async function untilDone<Answer>(
  { onFault }: Pick<FeedOptions, 'onFault'>,
  signal: AbortSignal,
  attempt: () => Promise<Answer>,
): Promise<Answer | null> {
  let pauseMs = PAUSE_FIRST_MS;
  while (!signal.aborted) {
    try {
      return await attempt();
    } catch (error) {
      if (!signal.aborted) onFault('temporal', error);
    }
    await pause(pauseMs, signal);
    pauseMs = Math.min(pauseMs * 2, PAUSE_LAST_MS);
  }
  return null;
}
