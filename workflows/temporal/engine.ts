/**
 * The engine on Temporal: for every run of a workflow that waits, Temporal runs one small workflow. That workflow keeps
 * the time and lets any process of the service carry out the steps.
 *
 * Invariants: the events and the rows are the truth. Temporal keeps only ids, names of steps, times and revisions;
 * whatever it lost, the feed sends again from the log and the tables. Temporal may be unreachable for any length of
 * time: nothing here fails because of that.
 */
import type { Alarm, Clock, Pause } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Lead } from '../../core/ports/lead.ts';
import type { Log } from '../../core/ports/log.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import { type CarriedOutWorkflow, onRows, onStreams } from '../../core/ports/workflows.ts';
import type { TemporalConnection } from './connection-options.ts';
import { type Behind, startFeed } from './feed.ts';
import { openTemporalServer, type Reachability } from './server.ts';
import { createSignals } from './signals.ts';
import { keepWorking } from './worker.ts';

export interface TemporalEngineOptions extends TemporalConnection {
  readonly workflows: readonly CarriedOutWorkflow[];
  readonly events: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  /** Elects the one process that sends events to Temporal. */
  readonly lead: Lead;
  /** How far in the log Temporal was notified. */
  readonly marks: PolicyMarks;
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: Alarm;
  readonly pause: Pause;
  /** Called for a step that failed, or a server that does not answer; the engine retries. */
  readonly onFault: (workflow: string, cause: unknown) => void;
  readonly log: Log;
  /** The namespace must exist on the server. */
  readonly namespace: string;
  readonly stepsAtOnceMax?: number;
  /** Runs kept in memory between their turns; with 0, each turn replays its run. */
  readonly runsCachedMax?: number;
}

export interface TemporalEngineState extends Reachability {
  /**
   * The events that Temporal has not been notified of; null in a process that does not notify it, because another does.
   */
  readonly behind: Behind | null;
}

export interface TemporalEngine {
  /** Returns the state from memory, without a wait. */
  state(): TemporalEngineState;
  /** Ends within seconds, whether Temporal answers or not; steps that are still running are carried out again later. */
  close(): Promise<void>;
}

/**
 * The task queue of runs; each workflow's steps have a queue whose name begins with this one. No other program uses
 * them.
 */
const TASK_QUEUE = 'strata';

/** Starts carrying out due steps, now or as soon as Temporal answers. */
export function startTemporalEngine(options: TemporalEngineOptions): TemporalEngine {
  const { onFault } = options;
  const server = openTemporalServer({ ...options, onLost: (cause) => onFault('temporal', cause) });
  const workflows = options.workflows.map(({ workflow }) => workflow);
  const signals = createSignals(server, TASK_QUEUE);
  const feed = startFeed({
    ...options,
    workflows: onStreams(workflows),
    rowWorkflows: onRows(workflows),
    server,
    signals,
  });
  const isReachable = (): boolean => server.reachability().reachable;
  const stopWorking = keepWorking({ ...options, isReachable, taskQueue: TASK_QUEUE });
  return {
    state: () => ({ ...server.reachability(), behind: feed.behind() }),
    close: async () => {
      await Promise.all([feed.close(), stopWorking()]);
      await server.close();
    },
  };
}
