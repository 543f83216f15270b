/**
 * The position of every model, and the callers that wait for one: read-your-writes.
 *
 * Invariants: a wait resolves only after the rows of its position are committed, by this process's runner or
 * another's. Positions known here may lag behind the database, but are never ahead of it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { backoff } from '../../core/kernel/backoff.ts';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import type { Projection, Queryable } from './projection.ts';

interface Model {
  readonly name: string;
  readonly version: number;
  position: LogPosition;
  /** Why the model is halted until an operator acts; null while it is not. */
  halted: string | null;
  /**
   * Set while this process writes the model: it then reports every commit here, and this call makes it read the log
   * now, at least to the position.
   */
  pull: ((position: LogPosition) => void) | null;
}

interface Waiter {
  readonly position: LogPosition;
  /** Null: all models. */
  readonly models: readonly string[] | null;
  readonly resolve: () => void;
}

/** Before the log's start: this process has read nothing of the model, not even that it exists. */
const UNKNOWN = -1n as LogPosition;
const POLL_FIRST_MS = 1;
const POLL_LAST_MS = 20;
const POLL_AFTER_FAULT_MS = 200;

export interface ProgressOptions {
  readonly database: Queryable;
  readonly projections: readonly Projection[];
  readonly onFault: (error: unknown) => void;
}

export class Progress {
  readonly #options: ProgressOptions;
  readonly #models: readonly Model[];
  #waiters: readonly Waiter[] = [];
  #polling = false;
  #closed = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
    this.#models = options.projections.map(({ name, version }) => ({
      name,
      version,
      position: UNKNOWN,
      halted: null,
      pull: null,
    }));
  }

  /**
   * Resolves when every model, or every one of `models`, has reached the position or is halted; the readers of a halted
   * model fail on their own. Rejects with `read-model-behind` after the time-out.
   */
  waitFor(position: LogPosition, timeoutMs: number, models: readonly string[] | null = null): Promise<void> {
    if (this.#isReached({ position, models })) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters = this.#waiters.filter((other) => other !== waiter);
        const message = `Not at ${position} after ${timeoutMs} ms: ${this.#describe({ position, models })}`;
        reject(new ReadModelError('read-model-behind', message));
      }, timeoutMs);
      const waiter: Waiter = {
        position,
        models,
        resolve: () => {
          clearTimeout(timer);
          resolve();
        },
      };
      this.#waiters = [...this.#waiters, waiter];
      this.#pull(waiter);
      this.#poll();
    });
  }

  /** The writers linger after an append, but not while anybody waits for them. */
  #pull(waiter: Waiter): void {
    for (const model of this.#modelsOf(waiter)) if (model.position < waiter.position) model.pull?.(waiter.position);
  }

  position(name: string): LogPosition {
    return this.#model(name).position;
  }

  /** Sets how to make this process's writer of a model read the log; null when it stops writing the model. */
  setWriter(name: string, pull: ((position: LogPosition) => void) | null): void {
    this.#model(name).pull = pull;
    this.#poll();
  }

  /** Sets a model's committed position. It may go back: after a lost tail of the log, or dropped tables. */
  setPosition(name: string, position: LogPosition, halted: string | null): void {
    const model = this.#model(name);
    model.position = position;
    model.halted = halted;
    if (this.#waiters.length > 0) this.#wake();
  }

  close(): void {
    this.#closed = true;
  }

  #model(name: string): Model {
    const model = this.#models.find((candidate) => candidate.name === name);
    if (model === undefined) throw new TypeError(`No model is called ${name}`);
    return model;
  }

  #modelsOf({ models }: Pick<Waiter, 'models'>): readonly Model[] {
    return models === null ? this.#models : this.#models.filter(({ name }) => models.includes(name));
  }

  #isReached(waiter: Pick<Waiter, 'position' | 'models'>): boolean {
    return this.#modelsOf(waiter).every((model) => model.position >= waiter.position || model.halted !== null);
  }

  #wake(): void {
    const due = this.#waiters.filter((waiter) => this.#isReached(waiter));
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { resolve } of due) resolve();
  }

  #describe(waiter: Pick<Waiter, 'position' | 'models'>): string {
    const { position } = waiter;
    const behind = this.#modelsOf(waiter).filter((model) => model.position < position && model.halted === null);
    return behind.map((model) => `${model.name} is at ${model.position}`).join(', ');
  }

  /** Polls the database for positions while a caller waits for a model that another process writes. */
  #poll(): void {
    if (this.#polling || this.#closed) return;
    if (this.#waiters.length === 0 || this.#models.every(({ pull }) => pull !== null)) return;
    this.#polling = true;
    this.#pollWhileAwaited().catch(this.#options.onFault);
  }

  async #pollWhileAwaited(): Promise<void> {
    const pauses = backoff(POLL_FIRST_MS, POLL_LAST_MS);
    try {
      while (!this.#closed && this.#waiters.length > 0 && this.#models.some(({ pull }) => pull === null)) {
        let pauseMs = pauses.next();
        try {
          await this.#readPositions();
        } catch (error) {
          this.#options.onFault(error);
          pauseMs = POLL_AFTER_FAULT_MS;
        }
        if (this.#waiters.length === 0) break;
        await sleep(pauseMs);
      }
    } finally {
      // No await lies between the last check for waiters and this line, so a later waiter starts a new poll.
      this.#polling = false;
    }
  }

  async #readPositions(): Promise<void> {
    const { rows } = await this.#options.database.query({
      name: 'read-models-positions',
      text: `SELECT name, version, position, halted FROM read_models.projections
        JOIN read_models.checkpoints USING (name, version) WHERE generation = live_generation`,
      values: [],
    });
    for (const row of rows) {
      const model = this.#models.find(({ name, version }) => name === row['name'] && version === row['version']);
      if (model === undefined || model.pull !== null) continue;
      this.setPosition(model.name, BigInt(row['position'] as string) as LogPosition, row['halted'] as string | null);
    }
  }
}
