/**
 * How far every model is, and who waits for it: read-your-writes.
 *
 * Must stay true: a wait resolves only once the rows of that position are committed, in this process's runner
 * or in another's. Positions known here may lag behind the database, never run ahead of it.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import type { Projection, Queryable } from './projection.ts';

interface Model {
  readonly name: string;
  readonly version: number;
  position: LogPosition;
  /** Why it stands still until an operator acts. */
  halted: string | null;
  /** Set while this process writes it: it then tells of every step, and can be asked to look at the log now. */
  pull: (() => void) | null;
}

interface Waiter {
  readonly position: LogPosition;
  /** Null: all of them. */
  readonly models: readonly string[] | null;
  readonly resolve: () => void;
}

/** Before the log's start: nothing is known of the model yet, not even that it exists. */
const UNKNOWN = -1n as LogPosition;
/** When a position is not reached by then, the models of this process look at the log themselves. */
const PULL_AFTER_MS = 10;
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
      ...{ name, version },
      position: UNKNOWN,
      halted: null,
      pull: null,
    }));
  }

  /**
   * Resolves when every model that is not halted, or each of those named, has reached the position; a halted one
   * fails its own readers. Rejects with `read-model-behind` after the time-out.
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
      setTimeout(() => this.#pull(waiter), PULL_AFTER_MS);
      this.#poll();
    });
  }

  /** The log mostly tells its subscribers by itself; asking each of them at once would only make them look twice. */
  #pull(waiter: Waiter): void {
    if (!this.#waiters.includes(waiter)) return;
    for (const model of this.#awaited(waiter)) if (model.position < waiter.position) model.pull?.();
  }

  position(name: string): LogPosition {
    return this.#model(name).position;
  }

  /** This process begins, or with null ends, to write a model. */
  writing(name: string, pull: (() => void) | null): void {
    this.#model(name).pull = pull;
    this.#poll();
  }

  /** A model's committed position. It may go back: a lost tail of the log, or tables that were dropped. */
  at(name: string, position: LogPosition, halted: string | null): void {
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

  #awaited({ models }: Pick<Waiter, 'models'>): readonly Model[] {
    return models === null ? this.#models : this.#models.filter(({ name }) => models.includes(name));
  }

  #isReached(waiter: Pick<Waiter, 'position' | 'models'>): boolean {
    return this.#awaited(waiter).every((model) => model.position >= waiter.position || model.halted !== null);
  }

  #wake(): void {
    const due = this.#waiters.filter((waiter) => this.#isReached(waiter));
    if (due.length === 0) return;
    this.#waiters = this.#waiters.filter((waiter) => !due.includes(waiter));
    for (const { resolve } of due) resolve();
  }

  #describe(waiter: Pick<Waiter, 'position' | 'models'>): string {
    const { position } = waiter;
    const behind = this.#awaited(waiter).filter((model) => model.position < position && model.halted === null);
    return behind.map((model) => `${model.name} is at ${model.position}`).join(', ');
  }

  /** While somebody waits for a model that another process writes, asks the database how far it is. */
  #poll(): void {
    if (this.#polling || this.#closed) return;
    if (this.#waiters.length === 0 || this.#models.every(({ pull }) => pull !== null)) return;
    this.#polling = true;
    void this.#pollWhileAwaited();
  }

  async #pollWhileAwaited(): Promise<void> {
    let pauseMs = POLL_FIRST_MS;
    while (!this.#closed && this.#waiters.length > 0 && this.#models.some(({ pull }) => pull === null)) {
      try {
        await this.#readPositions();
      } catch (error) {
        this.#options.onFault(error);
        pauseMs = POLL_AFTER_FAULT_MS;
      }
      if (this.#waiters.length === 0) break;
      await sleep(pauseMs);
      pauseMs = Math.min(pauseMs * 2, POLL_LAST_MS);
    }
    this.#polling = false;
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
      this.at(model.name, BigInt(row['position'] as string) as LogPosition, row['halted'] as string | null);
    }
  }
}
