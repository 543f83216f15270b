/**
 * The activities of the runs in Temporal: reading the state of a run, and carrying out its due step.
 *
 * Invariants: Temporal learns of a failure only as a stable code, because its histories are kept for long and must
 * hold no secret; the cause goes to `onFault`. A step is carried out only after its stream was read again, at its time
 * or later.
 */
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { untilAborted } from '../../core/kernel/aborted.ts';
import { timestamp } from '../../core/kernel/ids.ts';
import type { Alarm, Pause } from '../../core/ports/clock.ts';
import type { CarriedOutWorkflow } from '../../core/ports/workflows.ts';
import type { DueArguments, LookActivities, RunState, StepActivities } from './protocol.ts';
import { type RunStateContext, readRunState } from './read-run-state.ts';

export interface ActivityContext extends RunStateContext {
  readonly workflows: readonly CarriedOutWorkflow[];
  readonly alarm: Alarm;
  readonly pause: Pause;
  readonly onFault: (workflow: string, cause: unknown) => void;
  /** Aborted when this process ends. */
  readonly ended: AbortSignal;
}

/** The failure codes that histories hold. */
type FailureCode = 'unknown-workflow' | 'look-failed' | 'step-failed' | 'step-left-its-stream' | 'worker-ended';

/**
 * A step that arrives early by no more than this waits here: sound clocks of Temporal and of this process differ by
 * less. Internal: only clocks that differ reach it.
 */
const EARLY_MS_MAX = 1_000;
/** How long a step may take after its process was told to end. */
const GRACE_MS = 2_000;
/** How often a running step reports to Temporal that its worker is alive. */
const HEARTBEAT_MS = 2_000;

export function createLookActivities(context: ActivityContext): LookActivities {
  return {
    look: async ({ workflow, id }) => {
      const { workflow: known } = findWorkflow(context, workflow);
      const state = await reportingFaults(context, workflow, () => readRunState(context, known, id));
      if (state === FAILED) throw failure('look-failed');
      return state;
    },
  };
}

export function createStepActivities(context: ActivityContext): StepActivities {
  return {
    carryOut: async (due) => {
      const activity = Context.current();
      const beating = setInterval(() => activity.heartbeat(), HEARTBEAT_MS);
      try {
        return await carryOut(context, due, activity.cancellationSignal);
      } finally {
        clearInterval(beating);
      }
    },
  };
}

async function carryOut(context: ActivityContext, due: DueArguments, cancelled: AbortSignal): Promise<RunState> {
  const { alarm, pause, ended } = context;
  const { workflow, steps } = findWorkflow(context, due.workflow);
  const look = async (): Promise<RunState> => {
    const state = await reportingFaults(context, workflow.name, () => readRunState(context, workflow, due.id));
    if (state === FAILED) throw failure('look-failed');
    return state;
  };
  let state = await look();
  if (isEarly(state, due) && (state.wait?.restMs ?? 0) <= EARLY_MS_MAX) {
    // After the end the alarm stays, for a second at most.
    await untilAborted(ended, alarm.until(timestamp(due.dueAt), cancelled));
    state = await look();
  }
  if (!isWaitedFor(state, due) || isEarly(state, due)) return state;
  const carriedOut = await reportingFaults(context, workflow.name, async () => {
    const action = steps[due.step];
    if (action === undefined) throw new TypeError(`The workflow ${workflow.name} has no step ${due.step}`);
    await withinGrace(ended, pause, action({ id: due.id, revision: due.revision }, ended));
  });
  if (carriedOut === FAILED) throw failure(ended.aborted ? 'worker-ended' : 'step-failed');
  const after = await look();
  if (isWaitedFor(after, due)) throw failure('step-left-its-stream');
  return after;
}

function isWaitedFor({ revision, wait }: RunState, due: DueArguments): boolean {
  return revision === due.revision && wait?.step === due.step;
}

function isEarly(state: RunState, due: DueArguments): boolean {
  return isWaitedFor(state, due) && state.wait !== null && state.wait.restMs > 0;
}

/**
 * A process of an older version may receive a workflow that it does not know: Temporal retries, until a newer one gets
 * it.
 */
function findWorkflow({ workflows }: ActivityContext, name: string): CarriedOutWorkflow {
  const found = workflows.find(({ workflow }) => workflow.name === name);
  if (found === undefined) throw failure('unknown-workflow');
  return found;
}

const FAILED = Symbol('failed');

/** Reports an error to `onFault` and resolves `FAILED`, so that the error itself goes no further. */
async function reportingFaults<Answer>(
  { onFault, ended }: ActivityContext,
  workflow: string,
  work: () => Promise<Answer>,
): Promise<Answer | typeof FAILED> {
  try {
    return await work();
  } catch (error) {
    if (!ended.aborted) onFault(workflow, error);
    return FAILED;
  }
}

/** Stops waiting for a step some time after its process was told to end; otherwise its worker could not end either. */
async function withinGrace(ended: AbortSignal, pause: Pause, step: Promise<void>): Promise<void> {
  const done = new AbortController();
  try {
    await untilAborted(ended, step);
    if (ended.aborted) await Promise.race([step, pause(GRACE_MS, done.signal)]);
  } finally {
    done.abort();
  }
}

/** Returns a failure that Temporal retries. It has no stack, because a stack describes the machine. */
function failure(code: FailureCode): ApplicationFailure {
  const made = ApplicationFailure.create({ type: code, message: code });
  made.stack = code;
  return made;
}
