/**
 * Reads the live generation of a model: one statement, one snapshot, which says itself whether it may be trusted.
 *
 * Must stay true: an answer never comes from a generation that was replaced, from a model that halted, or from
 * a stream that is parked.
 */
import { ReadModelError } from '../core/ports/read-models.ts';
import { prepared } from './runner/bulk.ts';
import { describeFault, faultKind } from './runner/faults.ts';
import type { Projection, Queryable, Row, TableOf } from './runner/projection.ts';
import { tablesOf } from './runner/tables.ts';

export interface ReadQuery {
  /** A scalar expression of type json over the model's tables; parameters from `$1`. */
  readonly answer: (table: TableOf) => string;
}

export interface Concerns {
  readonly stream?: string;
  readonly account?: string;
}

export interface LiveReader {
  /**
   * The answer, parsed. `concerns` names the stream, or the account with all its streams, that must not be
   * parked. Throws `ReadModelError`.
   */
  read(query: ReadQuery, values: readonly unknown[], concerns: Concerns): Promise<unknown>;
}

/** Tries while rebuilds replace what is read: two within one read are already unlikely. */
const ATTEMPTS_MAX = 5;

export function createLiveReader(database: Queryable, projection: Projection): LiveReader {
  const { name, version } = projection;
  let generation: number | null = null;
  const texts = new WeakMap<ReadQuery, { readonly generation: number; readonly text: string }>();

  function textOf(query: ReadQuery, number: number): string {
    const known = texts.get(query);
    if (known?.generation === number) return known.text;
    const text = `SELECT live_generation, halted IS NOT NULL AS halted, parked_streams,
        (${query.answer(tablesOf({ projection, number }))}) AS answer
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

  async function refuseParked(current: number, { stream, account }: Concerns): Promise<void> {
    const row = await one({
      name: 'read-models-parked',
      text: `SELECT stream FROM read_models.parked WHERE name = $1 AND version = $2 AND generation = $3
        AND (stream = $4 OR account_id = $5) LIMIT 1`,
      values: [name, version, current, stream ?? null, account ?? null],
    });
    if (row === null) return;
    throw new ReadModelError('read-model-parked', `An event of ${row['stream']} could not be applied to ${name}`);
  }

  return {
    async read(query, values, concerns) {
      for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt += 1) {
        const current = generation ?? (await liveGeneration());
        generation = current;
        const row = await one(prepared(textOf(query, current), values));
        if (row === null || row['live_generation'] !== current) {
          generation = null;
          continue;
        }
        if (row['halted'] === true) throw new ReadModelError('read-model-unavailable', `The model ${name} halted`);
        if (row['parked_streams'] !== 0) await refuseParked(current, concerns);
        return row['answer'];
      }
      throw behind(`The model ${name} is being replaced`);
    },
  };
}

function behind(message: string): ReadModelError {
  return new ReadModelError('read-model-behind', message);
}
