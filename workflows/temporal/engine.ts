/**
 * The engine on Temporal: every run of a workflow that waits is a run of one small workflow there, which holds the time
 * and has the steps carried out by any process of the service.
 *
 * Must stay true: the events are the truth. Temporal keeps ids, names of steps, times and revisions only, and whatever
 * it lost is told to it again from the log. It may be away for as long as it likes: nothing here fails for that.
 */
import type { Alarm, Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Log } from '../../core/ports/log.ts';
import type { PolicyMarks } from '../../core/ports/policy-marks.ts';
import type { CarriedOutWorkflow, Lead } from '../../core/ports/workflows.ts';
import { type Behind, startFeed } from './feed.ts';
import type { Line } from './connection-options.ts';
import { openTemporalServer, type Reachability } from './server.ts';
import { createSignals } from './signals.ts';
import { keepWorking } from './worker.ts';

export interface TemporalEngineOptions extends Line {
  readonly workflows: readonly CarriedOutWorkflow[];
  readonly events: Pick<EventStore, 'head' | 'subscribe' | 'readStream'>;
  /** One process of all tells Temporal of events. */
  readonly lead: Lead;
  /** How far it was told. */
  readonly marks: PolicyMarks;
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: Alarm;
  /** A step that failed, or a server that does not answer: it is tried again by itself. */
  readonly onFault: (workflow: string, cause: unknown) => void;
  readonly log: Log;
  /** It must exist there. */
  readonly namespace: string;
  readonly stepsAtOnceMax?: number;
  /** Runs kept in memory between their turns; with 0, each turn replays its run. */
  readonly runsCachedMax?: number;
}

export interface TemporalEngineState extends Reachability {
  /** What Temporal is still to be told of; null in a process that does not tell it: another does. */
  readonly behind: Behind | null;
}

export interface TemporalEngine {
  /** From memory, at once. */
  state(): TemporalEngineState;
  /** Ends it within seconds, whether Temporal answers or not; steps that are still under way are carried out again. */
  close(): Promise<void>;
}

/** Queues of this name, and of this name with a workflow's, are ours in the namespace. */
const TASK_QUEUE = 'strata';

/** Begins to carry out what is due, now or as soon as Temporal answers. */
export function startTemporalEngine(options: TemporalEngineOptions): TemporalEngine {
  const { onFault } = options;
  const server = openTemporalServer({ ...options, onLost: (cause) => onFault('temporal', cause) });
  const workflows = options.workflows.map(({ workflow }) => workflow);
  const feed = startFeed({ ...options, workflows, server, signals: createSignals(server, TASK_QUEUE) });
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
