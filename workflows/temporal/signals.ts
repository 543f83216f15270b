/**
 * Word to the runs in Temporal that their streams moved.
 *
 * Must stay true: said twice, it changes nothing; of two runs of one name, at most one lives.
 */
import { WorkflowIdReusePolicy, WorkflowNotFoundError } from '@temporalio/common';
import { MOVED, type Moved, RUN_TYPE, type RunName, runIdOf } from './protocol.ts';
import type { TemporalServer } from './server.ts';

/** Both reject when the server does not take it, or does not answer: then it may have. */
export interface Signals {
  /** Tells a run, and begins it where there is none. */
  begin(run: RunName, moved: Moved): Promise<void>;
  /** Tells a run, if there is one. */
  tell(run: RunName, moved: Moved): Promise<void>;
}

/** A run's turn is given to another worker when the one that has it says nothing for so long. */
const TURN_SPAN = '2 seconds';

/** Signals to runs that queue there. */
export function createSignals({ client, call }: Pick<TemporalServer, 'client' | 'call'>, taskQueue: string): Signals {
  return {
    begin: async (run, moved) => {
      await call(() =>
        client.workflow.signalWithStart(RUN_TYPE, {
          workflowId: runIdOf(run),
          workflowIdReusePolicy: WorkflowIdReusePolicy.ALLOW_DUPLICATE,
          taskQueue,
          workflowTaskTimeout: TURN_SPAN,
          args: [run],
          signal: MOVED,
          signalArgs: [moved],
        }),
      );
    },
    tell: async (run, moved) => {
      try {
        await call(() => client.workflow.getHandle(runIdOf(run)).signal(MOVED, moved));
      } catch (error) {
        // It has ended by itself, as it should.
        if (!(error instanceof WorkflowNotFoundError)) throw error;
      }
    },
  };
}
