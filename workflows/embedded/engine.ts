/**
 * The embedded engine: carries out the steps of workflows inside the server, when the timers of the read model are due.
 *
 * Invariants: it keeps nothing in memory that matters. What is waited for is in the events. Running steps and
 * pauses after failures are in memory only; they are lost with the process, and the next leader finds the due timers
 * again. While nothing is due and no event arrives, it queries no timer of a stream: it sets one alarm for each
 * workflow's next due time. Rows are looked at as often as their workflow says.
 */
import { type Backoff, backoff } from '../../core/kernel/backoff.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import { WORKFLOW_STEPS_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import type { Alarm, Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { Lead } from '../../core/ports/lead.ts';
import { type CarriedOutWorkflow, onStreams, type Timer, type Timers } from '../../core/ports/workflows.ts';
import { waitUntilProjected } from '../../core/runtime/wait-until-projected.ts';
import { WakeSignal } from './wake-signal.ts';

export interface EmbeddedEngineOptions {
  readonly workflows: readonly CarriedOutWorkflow[];
  readonly events: Pick<EventStore, 'head' | 'subscribe'>;
  readonly timers: Timers;
  readonly lead: Lead;
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: Alarm;
  /** Called for a step that failed, or timers that cannot be read; the engine retries. */
  readonly onFault: (workflow: string, cause: unknown) => void;
  readonly stepsAtOnceMax?: number;
}

/** The pause after a step that failed or changed nothing; doubled each time. */
const PAUSE_FIRST_MS = 1_000;
const PAUSE_LAST_MS = 60_000;

/** Starts carrying out due steps. The returned function stops the engine and resolves when no step runs any more. */
export function startEmbeddedEngine(options: EmbeddedEngineOptions): () => Promise<void> {
  return options.lead.whenever('workflows', (signal) => carryOut(options, signal));
}

/** Runs until the signal. Rejects if the log or the timers cannot be read. */
async function carryOut(options: EmbeddedEngineOptions, signal: AbortSignal): Promise<void> {
  const { events } = options;
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  const runners = options.workflows.map((carriedOut) => new WorkflowRunner(options, carriedOut, ended));
  const wakeAll = (): void => {
    for (const runner of runners) runner.wake();
  };
  signal.addEventListener('abort', wakeAll, { once: true });
  const after = await events.head();
  const subscription = events.subscribe({
    after,
    categories: [
      ...new Set(onStreams(options.workflows.map(({ workflow }) => workflow)).map(({ category }) => category)),
    ],
    onEvents: async (batch, position) => {
      if (batch.length === 0 || !(await waitForTimers(options, position, ended))) return;
      wakeAll();
    },
  });
  try {
    await Promise.race([waitForTimers(options, after, ended), subscription.closed]);
    await Promise.race([subscription.closed, ...runners.map((runner) => runner.run())]);
  } finally {
    ending.abort();
    wakeAll();
    await Promise.allSettled([subscription.close(), ...runners.map((runner) => runner.stepsEnded())]);
  }
}

/** Waits without a limit until the timers have reached the position; resolves false if `ended` was aborted before. */
function waitForTimers(
  { timers, onFault }: Pick<EmbeddedEngineOptions, 'timers' | 'onFault'>,
  position: LogPosition,
  ended: AbortSignal,
): Promise<boolean> {
  const onBehind = (cause: unknown): void => onFault('timers', cause);
  return waitUntilProjected({ caughtUp: (wanted) => timers.caughtUp(wanted), onBehind }, position, ended);
}

/** A due timer that the engine leaves alone for now, because its step was carried out and the timer still exists. */
interface Pause {
  readonly revision: number;
  readonly spans: Backoff;
  readonly until: Timestamp;
}

class WorkflowRunner {
  readonly #options: EmbeddedEngineOptions;
  readonly #carriedOut: CarriedOutWorkflow;
  readonly #ended: AbortSignal;
  readonly #wake = new WakeSignal();
  readonly #running = new Map<string, Promise<void>>();
  readonly #pauses = new Map<string, Pause>();

  constructor(options: EmbeddedEngineOptions, carriedOut: CarriedOutWorkflow, ended: AbortSignal) {
    this.#options = options;
    this.#carriedOut = carriedOut;
    this.#ended = ended;
  }

  /** Reads the timers again: one may be due earlier than before. */
  wake(): void {
    this.#wake.signal();
  }

  /** Resolves when no step runs any more. */
  async stepsEnded(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async run(): Promise<void> {
    const { alarm } = this.#options;
    while (!this.#ended.aborted) {
      // oxlint-disable-next-line strata/promises-handled-at-once -- A wake signal never rejects.
      const woken = this.#wake.next();
      const nextAt = await this.#beginDue();
      // The end wakes the runner, which ends this wait. A signal made of `#ended` at every turn would never be freed.
      const waiting = new AbortController();
      try {
        await (nextAt === null ? woken : Promise.race([woken, alarm.until(nextAt, waiting.signal)]));
      } finally {
        waiting.abort();
      }
    }
  }

  /** Starts every step that is due and may run. Returns when the next step is due; null if only an event can tell. */
  async #beginDue(): Promise<Timestamp | null> {
    const { clock, stepsAtOnceMax = WORKFLOW_STEPS_AT_ONCE_MAX } = this.#options;
    // Beyond the running and the paused timers: as many as may run at the same time, and one more, to know the next due
    // time.
    const limit = stepsAtOnceMax + this.#running.size + this.#pauses.size + 1;
    const earliest = await this.#earliest(limit);
    const now = clock.now();
    const { workflow } = this.#carriedOut;
    let nextAt: Timestamp | null = 'rows' in workflow ? plusMs(now, workflow.lookMs) : null;
    for (const timer of earliest) {
      if (this.#ended.aborted || this.#running.size >= stepsAtOnceMax) return null;
      if (this.#running.has(timer.id)) continue;
      const at = this.#startableAt(timer);
      if (at <= now) this.#begin(timer);
      else if (nextAt === null || at < nextAt) nextAt = at;
    }
    this.#forgetPauses(earliest, now);
    return nextAt;
  }

  #earliest(limit: number): Promise<readonly Timer[]> {
    const { workflow } = this.#carriedOut;
    return 'rows' in workflow ? workflow.rows.earliest(limit) : this.#options.timers.earliest(workflow.name, limit);
  }

  #startableAt({ id, revision, dueAt }: Timer): Timestamp {
    const pause = this.#pauses.get(id);
    return pause?.revision === revision && pause.until > dueAt ? pause.until : dueAt;
  }

  /** Drops pauses of timers that do not exist any more or are beyond the timers that were read. */
  #forgetPauses(earliest: readonly Timer[], now: Timestamp): void {
    const there = new Map(earliest.map(({ id, revision }) => [id, revision]));
    for (const [id, { revision, until }] of this.#pauses) {
      if (there.get(id) !== revision && until <= now) this.#pauses.delete(id);
    }
  }

  #begin(timer: Timer): void {
    const running = this.#carryOutStep(timer).finally(() => {
      this.#running.delete(timer.id);
      this.wake();
    });
    this.#running.set(timer.id, running);
  }

  async #carryOutStep({ id, revision, step }: Timer): Promise<void> {
    const { workflow, steps } = this.#carriedOut;
    const { events, onFault } = this.#options;
    try {
      const action = steps[step];
      if (action === undefined) throw new TypeError(`The workflow ${workflow.name} has no step ${step}`);
      await action({ id, revision }, this.#ended);
      // The step's event is in the log now. If the timers were read before they reach it, this timer would be due
      // again.
      await waitForTimers(this.#options, await events.head(), this.#ended);
    } catch (error) {
      if (!this.#ended.aborted) onFault(workflow.name, error);
    }
    this.#pause(id, revision);
  }

  /** The pause counts only for the same timer at the same revision: an event of the stream changes the revision. */
  #pause(id: string, revision: number): void {
    const before = this.#pauses.get(id);
    const spans = before?.revision === revision ? before.spans : backoff(PAUSE_FIRST_MS, PAUSE_LAST_MS);
    this.#pauses.set(id, { revision, spans, until: plusMs(this.#options.clock.now(), spans.next()) });
  }
}
