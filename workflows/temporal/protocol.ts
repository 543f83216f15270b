/**
 * What is said between Temporal's runs and this program, by names that stand in histories for years.
 *
 * Must stay true: ids, names of steps, revisions and times only. A name or a shape is never changed, only added to.
 */

/** Which run of which workflow. */
export interface RunName {
  /** The workflow's. */
  readonly workflow: string;
  /** The entity's. */
  readonly id: string;
}

/** How a run stands, by the events of its stream. */
export interface Standing {
  /** Of the last event that was looked at; -1 before the first. */
  readonly revision: number;
  /** Of the workflow that looked at it. */
  readonly version: number;
  readonly wait: StandingWait | null;
}

export interface StandingWait {
  readonly step: string;
  /** A timestamp, by the clock of this program. */
  readonly dueAt: string;
  /** Until then by that clock when it was looked at; not above 0 for what is due. */
  readonly restMs: number;
}

export interface DueArguments extends RunName {
  readonly revision: number;
  readonly step: string;
  readonly dueAt: string;
}

/** An event was appended to a run's stream. */
export interface Moved {
  /** The event's. */
  readonly revision: number;
  /** Of the workflow now. */
  readonly version: number;
}

/** The type of every run in Temporal. */
export const RUN_TYPE = 'run';
/** The signal that an event came. */
export const MOVED = 'moved';
/** Asks a run how it stands, for operators: null before it looked. */
export const STANDING = 'standing';

export interface LookActivities {
  look(run: RunName): Promise<Standing>;
}

export interface StepActivities {
  /** Carries the step out if it is still waited for and its time has come; answers how the run stands afterwards. */
  carryOut(due: DueArguments): Promise<Standing>;
}

/** What a run is called in Temporal: one at a time has it. */
export function runIdOf({ workflow, id }: RunName): string {
  return `${workflow}-${id}`;
}

/** Where the steps of one workflow queue, so that its slow ones hold up no other's. */
export function stepQueueOf(taskQueue: string, workflow: string): string {
  return `${taskQueue}-${workflow}`;
}
