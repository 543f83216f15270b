/**
 * What Temporal's runs and this program send to each other, under names that histories keep for years.
 *
 * Invariants: only ids, names of steps, revisions and times. Names and shapes never change; they may only gain
 * members.
 */

/** Identifies a run of a workflow. */
export interface RunName {
  /** The workflow's name. */
  readonly workflow: string;
  /** The entity's id. */
  readonly id: string;
}

/** The state of a run, computed from the events of its stream. */
export interface RunState {
  /** The revision of the last event that was read; -1 before the first. */
  readonly revision: number;
  /** The version of the workflow that read it. */
  readonly version: number;
  readonly wait: RunWait | null;
}

export interface RunWait {
  readonly step: string;
  /** A timestamp, by this program's clock. */
  readonly dueAt: string;
  /** The time left until `dueAt` at the reading, by the same clock; 0 or less if it is due. */
  readonly restMs: number;
}

export interface DueArguments extends RunName {
  readonly revision: number;
  readonly step: string;
  readonly dueAt: string;
}

/** The signal's argument: an event was appended to the run's stream. */
export interface Moved {
  /** The event's revision. */
  readonly revision: number;
  /** The workflow's current version. */
  readonly version: number;
}

/** The workflow type of every run in Temporal. */
export const RUN_TYPE = 'run';
/** The signal that a stream moved. */
export const MOVED_SIGNAL = 'moved';
/** The query for a run's state, for operators; null before its first look. */
export const STATE_QUERY = 'standing';

export interface LookActivities {
  look(run: RunName): Promise<RunState>;
}

export interface StepActivities {
  /** Carries the step out if it is due and still waited for; returns the run's state afterwards. */
  carryOut(due: DueArguments): Promise<RunState>;
}

/** Returns the workflow id of a run in Temporal; at most one open run has it. */
export function runIdOf({ workflow, id }: RunName): string {
  return `${workflow}-${id}`;
}

/** Returns the task queue of one workflow's steps: a queue of its own, so that slow steps delay no other workflow. */
export function stepQueueOf(taskQueue: string, workflow: string): string {
  return `${taskQueue}-${workflow}`;
}
