/**
 * What runs in Temporal have this program do: look at their streams, and carry steps out.
 *
 * Must stay true: whatever goes wrong is told to Temporal as a stable code alone, since histories outlive secrets; the
 * cause goes to `onFault`. A step is carried out only after another look at its stream, at its time or later.
 */
import { Context } from '@temporalio/activity';
import { ApplicationFailure } from '@temporalio/common';
import { timestamp } from '../../core/kernel/ids.ts';
import type { Alarm } from '../../core/ports/clock.ts';
import type { CarriedOutWorkflow } from '../../core/ports/workflows.ts';
import { type LookContext, lookAt } from './read-run-state.ts';
import { pause } from './pause.ts';
import type { DueArguments, LookActivities, Standing, StepActivities } from './protocol.ts';

export interface ActivityContext extends LookContext {
  readonly workflows: readonly CarriedOutWorkflow[];
  readonly alarm: Alarm;
  readonly onFault: (workflow: string, cause: unknown) => void;
  /** Aborted when this process ends. */
  readonly ended: AbortSignal;
}

/** What stands in a history of what went wrong. */
type FailureCode = 'unknown-workflow' | 'look-failed' | 'step-failed' | 'step-left-its-stream' | 'worker-ended';

/** A step that comes early by less is held here: Temporal's clock and ours differ by so little on a sound machine. */
const HELD_MS_MAX = 1_000;
/** What a step may still take once its process ends. */
const GRACE_MS = 2_000;
/** How often a step under way says that its worker lives. */
const HEARTBEAT_MS = 2_000;

export function createLookActivities(context: ActivityContext): LookActivities {
  return {
    look: async ({ workflow, id }) => {
      const { workflow: known } = find(context, workflow);
      const standing = await settled(context, workflow, () => lookAt(context, known, id));
      if (standing === FAILED) throw failure('look-failed');
      return standing;
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

async function carryOut(context: ActivityContext, due: DueArguments, cancelled: AbortSignal): Promise<Standing> {
  const { alarm, ended } = context;
  const { workflow, steps } = find(context, due.workflow);
  const look = async (): Promise<Standing> => {
    const standing = await settled(context, workflow.name, () => lookAt(context, workflow, due.id));
    if (standing === FAILED) throw failure('look-failed');
    return standing;
  };
  let standing = await look();
  if (isEarly(standing, due) && (standing.wait?.restMs ?? 0) <= HELD_MS_MAX) {
    await alarm.until(timestamp(due.dueAt), AbortSignal.any([ended, cancelled]));
    standing = await look();
  }
  if (!isWaitedFor(standing, due) || isEarly(standing, due)) return standing;
  const carriedOut = await settled(context, workflow.name, async () => {
    const action = steps[due.step];
    if (action === undefined) throw new TypeError(`The workflow ${workflow.name} has no step ${due.step}`);
    await withinGrace(ended, action({ id: due.id, revision: due.revision }, ended));
  });
  if (carriedOut === FAILED) throw failure(ended.aborted ? 'worker-ended' : 'step-failed');
  const after = await look();
  if (isWaitedFor(after, due)) throw failure('step-left-its-stream');
  return after;
}

function isWaitedFor({ revision, wait }: Standing, due: DueArguments): boolean {
  return revision === due.revision && wait?.step === due.step;
}

function isEarly(standing: Standing, due: DueArguments): boolean {
  return isWaitedFor(standing, due) && standing.wait !== null && standing.wait.restMs > 0;
}

/** A process of an older version may be asked for what only newer ones know: they come to it in time. */
function find({ workflows }: ActivityContext, name: string): CarriedOutWorkflow {
  const found = workflows.find(({ workflow }) => workflow.name === name);
  if (found === undefined) throw failure('unknown-workflow');
  return found;
}

const FAILED = Symbol('failed');

/** Tells the fault here, so that nothing of it goes further. */
async function settled<Answer>(
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

/** Waits no longer for a step that goes on after its process was asked to end: its worker could not end either. */
async function withinGrace(ended: AbortSignal, step: Promise<void>): Promise<void> {
  const done = new AbortController();
  const over = AbortSignal.any([ended, done.signal]);
  const overdue = new Promise<void>((resolve) => {
    const begin = (): void => void pause(GRACE_MS, done.signal).then(resolve);
    if (over.aborted) begin();
    else over.addEventListener('abort', begin, { once: true });
  });
  try {
    await Promise.race([step, overdue]);
  } finally {
    done.abort();
  }
}

/** Tried again by Temporal; without a stack, which tells of the machine. */
function failure(code: FailureCode): ApplicationFailure {
  const made = ApplicationFailure.create({ type: code, message: code });
  made.stack = code;
  return made;
}
