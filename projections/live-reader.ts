/**
 * Reads the live generation of a model. One statement, and so one snapshot, returns both the answer and whether it is
 * valid. A read waits for what is being applied, or built, as it waits for the position of a write.
 *
 * Invariants: an answer never comes from a replaced generation, a halted model or a parked stream. Nor is it older
 * than a position that this process has seen: checkpoints are committed before they reach the disk (lead.ts), so a
 * PostgreSQL that crashed may hold older rows than it returned before. However many wait for a stream, one looks.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { backoff } from '../core/kernel/backoff.ts';
import type { LogPosition } from '../core/kernel/envelope.ts';
import { READ_WAIT_MS } from '../core/kernel/limits.ts';
import { ReadModelError } from '../core/ports/read-models.ts';
import { prepared } from './runner/bulk.ts';
import { describeFault, faultKind } from './runner/faults.ts';
import type { Projection, Queryable, Row, TableOf } from './runner/projection.ts';
import type { ProjectionRunner } from './runner/runner.ts';
import { tablesOf } from './runner/tables.ts';

export interface ReadQuery {
  /** Returns a query over the model's tables: at most one row and column, whose text is JSON; parameters from `$1`. */
  readonly answer: (table: TableOf) => string;
}

/** What must not be parked for an answer to be valid: some streams, or any stream of an account. */
export type Concerns =
  | {
      readonly streams: readonly string[];
      /** True if the rows are valid only after a later event of these streams, which is not yet applied. */
      readonly incomplete?: boolean;
    }
  | { readonly account: string };

export interface Answer {
  /** The parsed JSON; null if the query returns no row. */
  readonly value: unknown;
  /** The generation that was read; anything kept from an older one is invalid. */
  readonly generation: number;
}

export interface LiveReader {
  /**
   * Throws `ReadModelError`, among other reasons if a stream that `concerns` names for the answer is parked, and is not
   * applied within the time that a read may wait. What only a later retry or an operator helps is not waited for.
   */
  read(query: ReadQuery, values: readonly unknown[], concerns: (value: unknown) => Concerns): Promise<Answer>;
}

/**
 * Attempts while rebuilds replace the generation; even two rebuilds during one read are unlikely. Internal: only
 * rebuilds by the operator reach it.
 */
const ATTEMPTS_MAX = 5;

const PAUSE_FIRST_MS = 2;
const PAUSE_LAST_MS = 200;
/** How long one look at a parked stream goes on before those that wait for it look at their own time again. */
const LOOK_SPAN_MS = 1_000;

export function createLiveReader(
  database: Queryable,
  projection: Projection,
  progress: KnownProgress,
  waitMs = READ_WAIT_MS,
): LiveReader {
  return new CheckedReader(database, projection, progress, waitMs);
}

type KnownProgress = Pick<ProjectionRunner, 'knownPosition' | 'positionWentBack'>;

/** A stream that is parked in a generation only until it is applied. */
interface ParkedStream {
  readonly generation: number;
  readonly stream: string;
}

/** Why there is no valid answer yet. `parked`: the stream that is being applied; else it passes in a moment. */
interface NotYet {
  readonly notYet: string;
  readonly parked?: ParkedStream;
}

class CheckedReader implements LiveReader {
  readonly #database: Queryable;
  readonly #projection: Projection;
  readonly #progress: KnownProgress;
  readonly #waitMs: number;
  /** The live generation at the last read; null if it must be read again. */
  #generation: number | null = null;
  readonly #texts = new WeakMap<ReadQuery, { readonly generation: number; readonly text: string }>();
  /** The looks at parked streams that are under way. */
  readonly #looks = new Map<string, Promise<boolean>>();

  constructor(database: Queryable, projection: Projection, progress: KnownProgress, waitMs: number) {
    this.#database = database;
    this.#projection = projection;
    this.#progress = progress;
    this.#waitMs = waitMs;
  }

  async read(query: ReadQuery, values: readonly unknown[], concerns: (value: unknown) => Concerns): Promise<Answer> {
    const untilMs = performance.now() + this.#waitMs;
    const pauses = backoff(PAUSE_FIRST_MS, PAUSE_LAST_MS);
    let known = this.#progress.knownPosition(this.#projection.name);
    for (;;) {
      const read = await this.#tryRead(query, values, concerns, known);
      if (!('notYet' in read)) return read;
      const { parked, notYet } = read;
      if (performance.now() >= untilMs) throw behind(notYet);
      if (parked === undefined) await sleep(pauses.next());
      else if (!(await this.#isApplied(parked, untilMs))) throw behind(notYet);
      const now = this.#progress.knownPosition(this.#projection.name);
      if (now > known) known = now;
    }
  }

  /** `known`: the answer must not be older than this position. */
  async #tryRead(
    query: ReadQuery,
    values: readonly unknown[],
    concerns: (value: unknown) => Concerns,
    known: LogPosition,
  ): Promise<Answer | NotYet> {
    const { name } = this.#projection;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const current = this.#generation ?? (await this.#liveGeneration());
      // 0 while the first generation is being created.
      if (current === 0) return { notYet: `The model ${name} does not exist yet` };
      this.#generation = current;
      const row = await this.#one(prepared(this.#textOf(query, current), values));
      if (row === null || row['live_generation'] !== current) {
        this.#generation = null;
        continue;
      }
      if (row['halted'] === true) throw new ReadModelError('read-model-unavailable', `The model ${name} halted`);
      const position = BigInt((row['position'] as string | null) ?? 0) as LogPosition;
      if (position < known) {
        this.#progress.positionWentBack(name, position);
        return { notYet: `The model ${name} is at ${position}, and was at ${known}` };
      }
      const answer = row['answer'];
      const value: unknown = typeof answer === 'string' ? JSON.parse(answer) : null;
      const concerned = concerns(value);
      const parked = row['parked_streams'] === 0 ? null : await this.#parkedOf(current, concerned);
      if (parked !== null) return parked;
      const isIncomplete = 'streams' in concerned && concerned.incomplete === true;
      if (isIncomplete)
        return { notYet: `${concerned.streams.join()} are incomplete: a later event is not yet applied` };
      return { value, generation: current };
    }
    return { notYet: `The model ${name} is being replaced` };
  }

  /** Returns the statement's text, built once for each generation. */
  #textOf(query: ReadQuery, number: number): string {
    const projection = this.#projection;
    const { name, version } = projection;
    const known = this.#texts.get(query);
    if (known?.generation === number) return known.text;
    const text = `SELECT live_generation, halted IS NOT NULL AS halted, parked_streams,
        (SELECT position FROM read_models.checkpoints
         WHERE name = '${name}' AND version = ${version} AND generation = live_generation) AS position,
        (${query.answer(tablesOf({ projection, number }))})::text AS answer
      FROM read_models.projections WHERE name = '${name}' AND version = ${version}`;
    this.#texts.set(query, { generation: number, text });
    return text;
  }

  async #liveGeneration(): Promise<number> {
    const { name, version } = this.#projection;
    const row = await this.#one({
      name: `read-models-live-${name}`,
      text: `SELECT live_generation FROM read_models.projections WHERE name = $1 AND version = $2`,
      values: [name, version],
    });
    const number = row?.['live_generation'];
    return typeof number === 'number' ? number : 0;
  }

  /** Returns the first row; null if there is none, or if the statement's tables do not exist any more. */
  async #one(statement: Parameters<Queryable['query']>[0]): Promise<Row | null> {
    try {
      return (await this.#database.query(statement)).rows[0] ?? null;
    } catch (error) {
      const kind = faultKind(error);
      if (kind === 'stale') return null;
      if (kind !== 'outage') throw error;
      throw new ReadModelError('read-model-unavailable', describeFault(error), { cause: error });
    }
  }

  /**
   * Returns the stream that is parked only until it is applied; null if none is parked. Throws for one that is tried
   * again later, or that an operator must help.
   */
  async #parkedOf(current: number, concerns: Concerns): Promise<NotYet | null> {
    const { name, version } = this.#projection;
    const [streams, account] = 'streams' in concerns ? [concerns.streams, null] : [[], concerns.account];
    const row = await this.#one({
      name: 'read-models-parked',
      text: `SELECT stream, min(retry_at) IS NOT NULL AS passing, min(retry_at) <= now() AS due
        FROM read_models.parked WHERE name = $1 AND version = $2 AND generation = $3
          AND (stream = ANY($4) OR account_id = $5)
        GROUP BY stream ORDER BY passing, due LIMIT 1`,
      values: [name, version, current, streams, account],
    });
    if (row === null) return null;
    const stream = String(row['stream']);
    if (row['passing'] !== true) {
      throw new ReadModelError('read-model-parked', `An event of ${stream} could not be applied to ${name}`);
    }
    const notYet = `${stream} is being applied to ${name}`;
    if (row['due'] !== true) throw behind(notYet);
    return { notYet, parked: { generation: current, stream } };
  }

  /** Resolves true as soon as the stream is not parked any more; false when the time is over. */
  async #isApplied(parked: ParkedStream, untilMs: number): Promise<boolean> {
    while (performance.now() < untilMs) {
      const timeOut = sleep(untilMs - performance.now(), false, { ref: false });
      if (await Promise.race([this.#look(parked), timeOut])) return true;
    }
    return false;
  }

  /** Resolves true if the stream was released within a while. All that wait for a stream share the look. */
  #look(parked: ParkedStream): Promise<boolean> {
    const key = `${parked.generation} ${parked.stream}`;
    const underWay = this.#looks.get(key);
    if (underWay !== undefined) return underWay;
    const look = this.#isReleased(parked).finally(() => this.#looks.delete(key));
    this.#looks.set(key, look);
    return look;
  }

  async #isReleased({ generation, stream }: ParkedStream): Promise<boolean> {
    const untilMs = performance.now() + LOOK_SPAN_MS;
    const pauses = backoff(PAUSE_FIRST_MS, PAUSE_LAST_MS);
    while (performance.now() < untilMs) {
      await sleep(pauses.next());
      if ((await this.#parkedOf(generation, { streams: [stream] })) === null) return true;
    }
    return false;
  }
}

function behind(message: string): ReadModelError {
  return new ReadModelError('read-model-behind', message);
}
