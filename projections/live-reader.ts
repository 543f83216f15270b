/**
 * Reads the live generation of a model: one statement, one snapshot, which says itself whether it may be trusted.
 *
 * Must stay true: an answer never comes from a generation that was replaced, from a model that halted, or from
 * a stream that is parked; nor from one that is behind what its readers waited for: checkpoints are committed before
 * they are on the disk (lead.ts), so a PostgreSQL that crashed may show older rows than it did.
 */
import type { LogPosition } from '../core/kernel/envelope.ts';
import { ReadModelError } from '../core/ports/read-models.ts';
import { prepared } from './runner/bulk.ts';
import { describeFault, faultKind } from './runner/faults.ts';
import type { Projection, Queryable, Row, TableOf } from './runner/projection.ts';
import type { ProjectionRunner } from './runner/runner.ts';
import { tablesOf } from './runner/tables.ts';

export interface ReadQuery {
  /** A query of at most one row and column, whose text is JSON, over the model's tables; parameters from `$1`. */
  readonly answer: (table: TableOf) => string;
}

/** What must not be parked for an answer to be true: some streams, or any stream of an account. */
export type Concerns = { readonly streams: readonly string[] } | { readonly account: string };

export interface Answer {
  /** The parsed JSON; null where the query gives no row. */
  readonly value: unknown;
  /** The generation it is from: what was kept of an older one is void. */
  readonly generation: number;
}

export interface LiveReader {
  /** Throws `ReadModelError`, also when something that the answer's `concerns` name is parked. */
  read(query: ReadQuery, values: readonly unknown[], concerns: (value: unknown) => Concerns): Promise<Answer>;
}

/** Tries while rebuilds replace what is read: two within one read are already unlikely. */
const ATTEMPTS_MAX = 5;

export function createLiveReader(
  database: Queryable,
  projection: Projection,
  progress: Pick<ProjectionRunner, 'known' | 'wentBack'>,
): LiveReader {
  const { name, version } = projection;
  let generation: number | null = null;
  const texts = new WeakMap<ReadQuery, { readonly generation: number; readonly text: string }>();

  function textOf(query: ReadQuery, number: number): string {
    const known = texts.get(query);
    if (known?.generation === number) return known.text;
    const text = `SELECT live_generation, halted IS NOT NULL AS halted, parked_streams,
        (SELECT position FROM read_models.checkpoints
         WHERE name = '${name}' AND version = ${version} AND generation = live_generation) AS position,
        (${query.answer(tablesOf({ projection, number }))})::text AS answer
      FROM read_models.projections WHERE name = '${name}' AND version = ${version}`;
    texts.set(query, { generation: number, text });
    return text;
  }

  async function liveGeneration(): Promise<number> {
    const row = await one({
      name: `read-models-live-${name}`,
      text: `SELECT live_generation FROM read_models.projections WHERE name = $1 AND version = $2`,
      values: [name, version],
    });
    const number = row?.['live_generation'];
    // Zero stands while the first generation is being created.
    if (typeof number !== 'number' || number === 0) throw behind(`The model ${name} does not exist yet`);
    return number;
  }

  async function one(statement: Parameters<Queryable['query']>[0]): Promise<Row | null> {
    try {
      return (await database.query(statement)).rows[0] ?? null;
    } catch (error) {
      const kind = faultKind(error);
      if (kind === 'void') return null;
      if (kind !== 'outage') throw error;
      throw new ReadModelError('read-model-unavailable', describeFault(error), { cause: error });
    }
  }

  async function refuseParked(current: number, concerns: Concerns): Promise<void> {
    const row = await one({
      name: 'read-models-parked',
      text: `SELECT stream, retry_at IS NOT NULL AS passing FROM read_models.parked WHERE name = $1 AND version = $2 AND generation = $3
        AND (stream = ANY($4) OR account_id = $5) LIMIT 1`,
      values: [
        ...[name, version, current],
        ...('streams' in concerns ? [concerns.streams, null] : [[], concerns.account]),
      ],
    });
    if (row === null) return;
    const stream = String(row['stream']);
    if (row['passing'] === true) throw behind(`${stream} is being applied to ${name}`);
    throw new ReadModelError('read-model-parked', `An event of ${stream} could not be applied to ${name}`);
  }

  function requireNotBehind(known: LogPosition, position: LogPosition): void {
    if (position >= known) return;
    progress.wentBack(name, position);
    throw behind(`The model ${name} is at ${position}, and was at ${known}`);
  }

  return {
    async read(query, values, concerns) {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
        const current = generation ?? (await liveGeneration());
        generation = current;
        const known = progress.known(name);
        const row = await one(prepared(textOf(query, current), values));
        if (row === null || row['live_generation'] !== current) {
          generation = null;
          continue;
        }
        if (row['halted'] === true) throw new ReadModelError('read-model-unavailable', `The model ${name} halted`);
        requireNotBehind(known, BigInt((row['position'] as string | null) ?? 0) as LogPosition);
        const answer = row['answer'];
        const value: unknown = typeof answer === 'string' ? JSON.parse(answer) : null;
        if (row['parked_streams'] !== 0) await refuseParked(current, concerns(value));
        return { value, generation: current };
      }
      throw behind(`The model ${name} is being replaced`);
    },
  };
}

function behind(message: string): ReadModelError {
  return new ReadModelError('read-model-behind', message);
}
