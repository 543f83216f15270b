/**
 * Signals to the runs in Temporal that their streams moved.
 *
 * Invariants: a repeated signal changes nothing; of two runs with one id, at most one is open.
 */
import { WorkflowIdReusePolicy, WorkflowNotFoundError } from '@temporalio/common';
import { MOVED_SIGNAL, type Moved, RUN_TYPE, type RunName, runIdOf } from './protocol.ts';
import type { TemporalServer } from './server.ts';

/** Both methods reject if the server refuses or does not answer; in the latter case it may have taken the signal. */
export interface Signals {
  /** Signals a run, and starts it if there is none. */
  signalWithStart(run: RunName, moved: Moved): Promise<void>;
  /** Signals a run, if there is one. */
  signal(run: RunName, moved: Moved): Promise<void>;
}

/** How long a worker may be silent about a run's turn before Temporal gives the turn to another worker. */
const TURN_TIMEOUT = '2 seconds';

/** Returns the signals to runs whose task queue is `taskQueue`. */
export function createSignals({ client, call }: Pick<TemporalServer, 'client' | 'call'>, taskQueue: string): Signals {
  return {
    signalWithStart: async (run, moved) => {
      await call(() =>
        client.workflow.signalWithStart(RUN_TYPE, {
          workflowId: runIdOf(run),
          workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
          taskQueue,
          workflowTaskTimeout: TURN_TIMEOUT,
          args: [run],
          signal: MOVED_SIGNAL,
          signalArgs: [moved],
        }),
      );
    },
    signal: async (run, moved) => {
      try {
        await call(() => client.workflow.getHandle(runIdOf(run)).signal(MOVED_SIGNAL, moved));
      } catch (error) {
        // The run has ended already, because nothing was waited for.
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },
  };
}
