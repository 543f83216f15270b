/**
 * The embedded engine: carries out the steps of workflows inside the server, by the timers that projections keep.
 *
 * Must stay true: it remembers nothing that matters. What waits stands in the events; what it holds in memory, steps
 * under way and pauses after failures, is gone with it and found anew by whoever leads next. While nothing is due and
 * no event comes, it asks nothing of anybody: one alarm is set to the next due time of each workflow.
 */
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { plusMs, type Timestamp } from '../../core/kernel/ids.ts';
import { WORKFLOW_STEPS_AT_ONCE_MAX } from '../../core/kernel/limits.ts';
import type { Alarm, Clock } from '../../core/ports/clock.ts';
import type { EventStore } from '../../core/ports/event-store.ts';
import type { CarriedOutWorkflow, Lead, Timer, Timers } from '../../core/ports/workflows.ts';
import { untilShown } from '../../core/use-cases/until-shown.ts';
import { Bell } from './bell.ts';

export interface EmbeddedEngineOptions {
  readonly workflows: readonly CarriedOutWorkflow[];
  readonly events: Pick<EventStore, 'head' | 'subscribe'>;
  readonly timers: Timers;
  readonly lead: Lead;
  readonly clock: Pick<Clock, 'now'>;
  readonly alarm: Alarm;
  /** A step that failed, or timers that cannot be read now: it is tried again by itself. */
  readonly onFault: (workflow: string, cause: unknown) => void;
  readonly stepsAtOnceMax?: number;
}

/** After a step that failed, or changed nothing; doubled each time. */
const PAUSE_FIRST_MS = 1_000;
const PAUSE_LAST_MS = 60_000;

/** Begins to carry out what is due; the function returned ends it, and resolves when no step runs any more. */
export function startEmbeddedEngine(options: EmbeddedEngineOptions): () => Promise<void> {
  return options.lead.whenever('workflows', (signal) => carryOut(options, signal));
}

/** Until the signal. Rejects when the log or the timers cannot be read. */
async function carryOut(options: EmbeddedEngineOptions, signal: AbortSignal): Promise<void> {
  const { events } = options;
  const ending = new AbortController();
  const ended = AbortSignal.any([signal, ending.signal]);
  const runners = options.workflows.map((carriedOut) => new WorkflowRunner(options, carriedOut, ended));
  const lookAll = (): void => {
    for (const runner of runners) runner.look();
  };
  signal.addEventListener('abort', lookAll, { once: true });
  const after = await events.head();
  const subscription = events.subscribe({
    after,
    categories: [...new Set(options.workflows.map(({ workflow }) => workflow.category))],
    onEvents: async (batch, position) => {
      if (batch.length === 0 || !(await shown(options, position, ended))) return;
      lookAll();
    },
  });
  try {
    await Promise.race([shown(options, after, ended), subscription.closed]);
    await Promise.race([subscription.closed, ...runners.map((runner) => runner.run())]);
  } finally {
    ending.abort();
    lookAll();
    await Promise.allSettled([subscription.close(), ...runners.map((runner) => runner.settled())]);
  }
}

/** Waits, as long as it takes, until the timers show the position; false when it ended before. */
function shown(
  { timers, onFault }: Pick<EmbeddedEngineOptions, 'timers' | 'onFault'>,
  position: LogPosition,
  ended: AbortSignal,
): Promise<boolean> {
  const onBehind = (cause: unknown): void => onFault('timers', cause);
  return untilShown({ caughtUp: (wanted) => timers.caughtUp(wanted), onBehind }, position, ended);
}

/** Why a timer that is due is left alone for now: it was carried out, and still stands. */
interface Pause {
  readonly revision: number;
  readonly spanMs: number;
  readonly until: Timestamp;
}

class WorkflowRunner {
  readonly #options: EmbeddedEngineOptions;
  readonly #carriedOut: CarriedOutWorkflow;
  readonly #ended: AbortSignal;
  readonly #bell = new Bell();
  readonly #running = new Map<string, Promise<void>>();
  readonly #pauses = new Map<string, Pause>();

  constructor(options: EmbeddedEngineOptions, carriedOut: CarriedOutWorkflow, ended: AbortSignal) {
    this.#options = options;
    this.#carriedOut = carriedOut;
    this.#ended = ended;
  }

  /** Something may be due earlier than it was. */
  look(): void {
    this.#bell.ring();
  }

  /** Resolves when no step runs any more. */
  async settled(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async run(): Promise<void> {
    const { alarm } = this.#options;
    while (!this.#ended.aborted) {
      const rung = this.#bell.next();
      const nextAt = await this.#beginDue();
      const waiting = new AbortController();
      const signal = AbortSignal.any([this.#ended, waiting.signal]);
      try {
        await (nextAt === null ? rung : Promise.race([rung, alarm.until(nextAt, signal)]));
      } finally {
        waiting.abort();
      }
    }
  }

  /** Begins every step that is due and may run; answers when the next will be, null where only an event can tell. */
  async #beginDue(): Promise<Timestamp | null> {
    const { timers, clock, stepsAtOnceMax = WORKFLOW_STEPS_AT_ONCE_MAX } = this.#options;
    // Past those that are being dealt with there is room for as many more as may run, and for the next to wait for.
    const limit = stepsAtOnceMax + this.#running.size + this.#pauses.size + 1;
    const earliest = await timers.earliest(this.#carriedOut.workflow.name, limit);
    const now = clock.now();
    let nextAt: Timestamp | null = null;
    for (const timer of earliest) {
      if (this.#ended.aborted || this.#running.size >= stepsAtOnceMax) return null;
      if (this.#running.has(timer.id)) continue;
      const at = this.#heldUntil(timer);
      if (at <= now) this.#begin(timer);
      else if (nextAt === null || at < nextAt) nextAt = at;
    }
    this.#forgetPauses(earliest, now);
    return nextAt;
  }

  #heldUntil({ id, revision, dueAt }: Timer): Timestamp {
    const pause = this.#pauses.get(id);
    return pause?.revision === revision && pause.until > dueAt ? pause.until : dueAt;
  }

  /** Of timers that are gone, or further off than was looked. */
  #forgetPauses(earliest: readonly Timer[], now: Timestamp): void {
    const there = new Map(earliest.map(({ id, revision }) => [id, revision]));
    for (const [id, { revision, until }] of this.#pauses) {
      if (there.get(id) !== revision && until <= now) this.#pauses.delete(id);
    }
  }

  #begin(timer: Timer): void {
    const running = this.#carryOutStep(timer).finally(() => {
      this.#running.delete(timer.id);
      this.look();
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
      // Its record is in the log now: looked at before, the timer would be due once more.
      await shown(this.#options, await events.head(), this.#ended);
    } catch (error) {
      if (!this.#ended.aborted) onFault(workflow.name, error);
    }
    this.#pause(id, revision);
  }

  /** Counts only if the same timer still stands: an event moves it to another revision. */
  #pause(id: string, revision: number): void {
    const before = this.#pauses.get(id);
    const spanMs = before?.revision === revision ? Math.min(before.spanMs * 2, PAUSE_LAST_MS) : PAUSE_FIRST_MS;
    this.#pauses.set(id, { revision, spanMs, until: plusMs(this.#options.clock.now(), spanMs) });
  }
}
