/**
 * Workflows: processes that outlive a request, wait, retry and give up.
 *
 * A workflow is a pure function of one stream's events: after each event it returns which step is due next, and when.
 * An engine carries the steps out. A step appends its result to that stream, and that event moves the workflow on. So
 * an engine has to keep nothing but the events, and any engine can take over from any other. What must leave no event
 * waits in a row of a table instead: the row says which step is due, and the step changes or removes the row.
 *
 * Invariants (one contract suite runs on each engine):
 * - a step is carried out at or after its due time, never before, and only while the events seen so far call for it;
 * - at least once: if the process dies after a step's effect and before its event, the step is carried out again. So a
 *   step reads its stream again and is repeatable; an effect that may happen only once is claimed by an append;
 * - a step that failed, or appended nothing to its stream, is carried out again with backoff;
 * - a slow step delays no other workflow. It delays other steps of its kind only through the limit of concurrent steps.
 */
import type { LogPosition, RecordedEvent } from '../kernel/envelope.ts';
import type { Timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';

export interface Wait<Step extends string = string> {
  readonly step: Step;
  /** When the step is due, computed from the events, e.g. the end of the last attempt plus the wait after it. */
  readonly dueAt: Timestamp;
  /** What the following call of `next` needs: ids, counters and times, never a secret or a body. */
  readonly memory: JsonObject;
}

export interface Workflow<Step extends string = string> {
  /** Lower-case letters and dashes. */
  readonly name: string;
  /** From 1; raised whenever `next` returns something else for the same events. A workflow is never removed. */
  readonly version: number;
  /** The category of its streams: each stream is one run of the workflow, named by the entity's id. */
  readonly category: string;
  /** Returns what the run waits for after an event. Null ends the run until a later event starts it again. */
  next(wait: Wait<Step> | null, event: RecordedEvent): Wait<Step> | null;
}

/** A workflow whose runs wait in rows of a table: each row is one run. */
export interface RowWorkflow<Step extends string = string> {
  /** Lower-case letters and dashes. */
  readonly name: string;
  /** From 1; raised whenever the rows mean something else. A workflow is never removed. */
  readonly version: number;
  readonly rows: WaitingRows<Step>;
  /** An engine looks for new rows at least this often: so much late may the step of a new row be. */
  readonly lookMs: number;
}

/** The rows of a workflow, as an engine sees them. No event tells of a new row: an engine looks again at intervals. */
export interface WaitingRows<Step extends string = string> {
  /** Returns what a row waits for; null if there is no such row. */
  waitOf(id: string): Promise<Timer<Step> | null>;
  /** Returns at most `limit` rows, those due first, in that order. */
  earliest(limit: number): Promise<readonly Timer<Step>[]>;
  /** Returns at most `limit` rows that were not marked as told to the engine of this name, those due first. */
  untold(engine: string, limit: number): Promise<readonly Timer<Step>[]>;
  markTold(engine: string, ids: readonly string[]): Promise<void>;
}

/** A step that is due. */
export interface DueStep {
  /** The entity's id. */
  readonly id: string;
  /** The revision of the event after which the step became due: the step's append may expect it. In a row: its own. */
  readonly revision: number;
}

/**
 * Carries out one step, and resolves after its event was appended. After a rejection the engine retries later. When
 * aborted, it may end early: the next engine carries the step out again.
 */
export type StepAction = (due: DueStep, signal: AbortSignal) => Promise<void>;

export type StepActions<Step extends string = string> = { readonly [Name in Step]: StepAction };

export interface CarriedOutWorkflow {
  readonly workflow: Workflow | RowWorkflow;
  readonly steps: StepActions;
}

/** Joins a workflow with the actions of its steps. The types check that the step names match. */
export function carriedOut<Step extends string>(
  workflow: Workflow<Step> | RowWorkflow<Step>,
  steps: StepActions<Step>,
): CarriedOutWorkflow {
  return { workflow, steps };
}

/** Returns the workflows whose runs are streams. */
export function onStreams(workflows: readonly (Workflow | RowWorkflow)[]): readonly Workflow[] {
  return workflows.filter((workflow) => 'category' in workflow);
}

/** Returns the workflows whose runs are rows. */
export function onRows(workflows: readonly (Workflow | RowWorkflow)[]): readonly RowWorkflow[] {
  return workflows.filter((workflow) => 'rows' in workflow);
}

/** The timers of all runs of a workflow, folded from the events up to a position. */
export interface Timers {
  /** Resolves when the timers include the position; rejects with `ReadModelError` at a timeout. */
  caughtUp(position: LogPosition): Promise<void>;
  /** Returns at most `limit` timers, those due first, in that order. */
  earliest(workflow: string, limit: number): Promise<readonly Timer[]>;
}

export interface Timer<Step extends string = string> extends DueStep {
  readonly step: Step;
  readonly dueAt: Timestamp;
}

/** The timers of all workflows that are due and whose step was not carried out yet. */
export interface OverdueTimers {
  overdue(now: Timestamp): Promise<{ readonly count: number; readonly oldestAt: Timestamp | null }>;
}
