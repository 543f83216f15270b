/**
 * Reads the live generation of a model. One statement, and so one snapshot, returns both the answer and whether it is
 * valid.
 *
 * Must stay true: an answer never comes from a replaced generation, a halted model or a parked stream. Nor is it older
 * than a position that this process has seen: checkpoints are committed before they reach the disk (lead.ts), so a
 * PostgreSQL that crashed may hold older rows than it returned before.
 */
import type { LogPosition } from '../core/kernel/envelope.ts';
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
export type Concerns = { readonly streams: readonly string[] } | { readonly account: string };

export interface Answer {
  /** The parsed JSON; null if the query returns no row. */
  readonly value: unknown;
  /** The generation that was read; anything kept from an older one is invalid. */
  readonly generation: number;
}

export interface LiveReader {
  /** Throws `ReadModelError`, among other reasons if a stream that `concerns` names for the answer is parked. */
  read(query: ReadQuery, values: readonly unknown[], concerns: (value: unknown) => Concerns): Promise<Answer>;
}

/** Attempts while rebuilds replace the generation; even two rebuilds during one read are unlikely. */
const ATTEMPTS_MAX = 5;

export function createLiveReader(database: Queryable, projection: Projection, progress: KnownProgress): LiveReader {
  return new CheckedReader(database, projection, progress);
}

type KnownProgress = Pick<ProjectionRunner, 'knownPosition' | 'positionWentBack'>;

class CheckedReader implements LiveReader {
  readonly #database: Queryable;
  readonly #projection: Projection;
  readonly #progress: KnownProgress;
  /** The live generation at the last read; null if it must be read again. */
  #generation: number | null = null;
  readonly #texts = new WeakMap<ReadQuery, { readonly generation: number; readonly text: string }>();

  constructor(database: Queryable, projection: Projection, progress: KnownProgress) {
    this.#database = database;
    this.#projection = projection;
    this.#progress = progress;
  }

  async read(query: ReadQuery, values: readonly unknown[], concerns: (value: unknown) => Concerns): Promise<Answer> {
    const { name } = this.#projection;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
      const current = this.#generation ?? (await this.#liveGeneration());
      this.#generation = current;
      const known = this.#progress.knownPosition(name);
      const row = await this.#one(prepared(this.#textOf(query, current), values));
      if (row === null || row['live_generation'] !== current) {
        this.#generation = null;
        continue;
      }
      if (row['halted'] === true) throw new ReadModelError('read-model-unavailable', `The model ${name} halted`);
      this.#requireNotBehind(known, BigInt((row['position'] as string | null) ?? 0) as LogPosition);
      const answer = row['answer'];
      const value: unknown = typeof answer === 'string' ? JSON.parse(answer) : null;
      if (row['parked_streams'] !== 0) await this.#refuseParked(current, concerns(value));
      return { value, generation: current };
    }
    throw behind(`The model ${name} is being replaced`);
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
    // 0 while the first generation is being created.
    if (typeof number !== 'number' || number === 0) throw behind(`The model ${name} does not exist yet`);
    return number;
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

  async #refuseParked(current: number, concerns: Concerns): Promise<void> {
    const { name, version } = this.#projection;
    const [streams, account] = 'streams' in concerns ? [concerns.streams, null] : [[], concerns.account];
    const row = await this.#one({
      name: 'read-models-parked',
      text: `SELECT stream, retry_at IS NOT NULL AS passing FROM read_models.parked WHERE name = $1 AND version = $2 AND generation = $3
        AND (stream = ANY($4) OR account_id = $5) LIMIT 1`,
      values: [name, version, current, streams, account],
    });
    if (row === null) return;
    const stream = String(row['stream']);
    if (row['passing'] === true) throw behind(`${stream} is being applied to ${name}`);
    throw new ReadModelError('read-model-parked', `An event of ${stream} could not be applied to ${name}`);
  }

  #requireNotBehind(known: LogPosition, position: LogPosition): void {
    if (position >= known) return;
    const { name } = this.#projection;
    this.#progress.positionWentBack(name, position);
    throw behind(`The model ${name} is at ${position}, and was at ${known}`);
  }
}

function behind(message: string): ReadModelError {
  return new ReadModelError('read-model-behind', message);
}
