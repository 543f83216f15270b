/**
 * Workflows: what outlives a request, waits, tries again and gives up.
 *
 * A workflow is a pure function of one stream's events: after each it says what it waits for, until when, and which
 * step is due then. An engine carries the steps out; what a step does, it appends to that stream, and that moves the
 * workflow on. So the events are all an engine has to keep, and any engine can take over from any other.
 *
 * Must stay true (one contract suite runs on each engine):
 * - a step is carried out at or after its time, never before, and only while the events seen so far wait for it;
 * - at least once: whatever dies between what a step does and its record, it is carried out again. So a step looks at
 *   its stream anew and is repeatable; what may happen once only is claimed by an append;
 * - a step that failed, or left its stream as it was, is carried out again after a pause that grows;
 * - a slow step holds up no other workflow, and no other step of its own kind but by the bound on how many run at once.
 */
import type { LogPosition, RecordedEvent } from '../kernel/envelope.ts';
import type { Timestamp } from '../kernel/ids.ts';
import type { JsonObject } from '../kernel/json.ts';

export interface Wait<Step extends string = string> {
  readonly step: Step;
  /** When it is due: a time the events tell, such as the end of the attempt before and the wait after it. */
  readonly dueAt: Timestamp;
  /** What `next` has to know again: ids, counters and times, never a secret or a body. */
  readonly memory: JsonObject;
}

export interface Workflow<Step extends string = string> {
  /** Lower-case letters and dashes. */
  readonly name: string;
  /** Raised, from 1, whenever `next` answers the same events otherwise. A workflow is never taken away. */
  readonly version: number;
  /** Its streams: each is one run of the workflow, named by the entity's id. */
  readonly category: string;
  /** What is waited for after an event; null for nothing, which ends it until a later event begins it anew. */
  next(wait: Wait<Step> | null, event: RecordedEvent): Wait<Step> | null;
}

/** A step whose time has come. */
export interface DueStep {
  /** The entity's. */
  readonly id: string;
  /** Of the last event that this was decided by: an append of the step may expect it. */
  readonly revision: number;
}

/**
 * Carries one step out, and resolves once its record was appended; a rejection means again later. Aborted, it may end
 * early: it is carried out again by whoever comes next.
 */
export type StepAction = (due: DueStep, signal: AbortSignal) => Promise<void>;

export type StepActions<Step extends string = string> = { readonly [Name in Step]: StepAction };

export interface CarriedOutWorkflow {
  readonly workflow: Workflow;
  readonly steps: StepActions;
}

/** Joins a workflow with what its steps do, both of the same names. */
export function carriedOut<Step extends string>(
  workflow: Workflow<Step>,
  steps: StepActions<Step>,
): CarriedOutWorkflow {
  return { workflow, steps };
}

/** What every run of a workflow waits for, as the events up to a position say. */
export interface Timers {
  /** Resolves when they show the position; rejects with `ReadModelError` in time. */
  caughtUp(position: LogPosition): Promise<void>;
  /** Those due first, in that order; at most `limit`. */
  earliest(workflow: string, limit: number): Promise<readonly Timer[]>;
}

export interface Timer extends DueStep {
  readonly step: string;
  readonly dueAt: Timestamp;
}

/** What should have been carried out by now, of all workflows. */
export interface OverdueTimers {
  overdue(now: Timestamp): Promise<{ readonly count: number; readonly oldestAt: Timestamp | null }>;
}

/** The one node that does something for all. */
export interface Lead {
  /**
   * Calls `work` whenever this node comes to lead, and anew after it ended or failed; the signal is aborted once the
   * lead is lost. The function returned gives it up, and resolves when `work` has ended.
   */
  whenever(name: string, work: (signal: AbortSignal) => Promise<void>): () => Promise<void>;
}
