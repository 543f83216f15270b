/**
 * Workflows: processes that outlive a request, wait, retry and give up.
 *
 * A workflow is a pure function of one stream's events: after each event it returns which step is due next, and when.
 * An engine carries the steps out. A step appends its result to that stream, and that event moves the workflow on. So
 * an engine has to keep nothing but the events, and any engine can take over from any other.
 *
 * Must stay true (one contract suite runs on each engine):
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

/** A step that is due. */
export interface DueStep {
  /** The entity's id. */
  readonly id: string;
  /** The revision of the event after which the step became due: the step's append may expect it. */
  readonly revision: number;
}

/**
 * Carries out one step, and resolves after its event was appended. After a rejection the engine retries later. When
 * aborted, it may end early: the next engine carries the step out again.
 */
export type StepAction = (due: DueStep, signal: AbortSignal) => Promise<void>;

export type StepActions<Step extends string = string> = { readonly [Name in Step]: StepAction };

export interface CarriedOutWorkflow {
  readonly workflow: Workflow;
  readonly steps: StepActions;
}

/** Joins a workflow with the actions of its steps. The types check that the step names match. */
export function carriedOut<Step extends string>(
  workflow: Workflow<Step>,
  steps: StepActions<Step>,
): CarriedOutWorkflow {
  return { workflow, steps };
}

/** The timers of all runs of a workflow, folded from the events up to a position. */
export interface Timers {
  /** Resolves when the timers include the position; rejects with `ReadModelError` at a timeout. */
  caughtUp(position: LogPosition): Promise<void>;
  /** Returns at most `limit` timers, those due first, in that order. */
  earliest(workflow: string, limit: number): Promise<readonly Timer[]>;
}

export interface Timer extends DueStep {
  readonly step: string;
  readonly dueAt: Timestamp;
}

/** The timers of all workflows that are due and whose step was not carried out yet. */
export interface OverdueTimers {
  overdue(now: Timestamp): Promise<{ readonly count: number; readonly oldestAt: Timestamp | null }>;
}
