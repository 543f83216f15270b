/**
 * Compares the live generation of a model with one built from the log, row by row.
 *
 * Invariants: both are compared as of one position of the log, and nothing live is written.
 */
import type { PoolClient } from 'pg';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { plusMs, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { type Build, type BuildContext, buildUpTo, withBuild } from './build.ts';
import { readLiveState } from './checkpoint.ts';
import { ProjectionHalted } from './faults.ts';
import type { Projection, ProjectionTable } from './projection.ts';
import { tablesOf } from './tables.ts';

export interface RowDifference {
  readonly table: string;
  /** The row's key columns as text. */
  readonly key: string;
  /** `missing`: only the build has the row; `extra`: only the live table has it; `different`: the two differ. */
  readonly kind: 'missing' | 'extra' | 'different';
}

export interface Verification {
  readonly projection: string;
  readonly position: LogPosition;
  /** The number of rows in the build. */
  readonly rows: number;
  readonly differences: number;
  /** The first differences, at most `EXAMPLES_MAX`. */
  readonly examples: readonly RowDifference[];
}

/** Differences that a report shows. Internal: only the operator reads what it cuts. */
const EXAMPLES_MAX = 20;

const FETCH_ROWS = 5_000;

/** Builds the model beside the live one, up to the live one's position, compares, and drops the build. */
export function verify(context: BuildContext, projection: Projection): Promise<Verification> {
  return withBuild(context, projection, async (build) => {
    const reached = await readLivePosition(build);
    if (reached > (await context.events.head())) {
      throw new ProjectionHalted(`${projection.name} is ahead of the log, at ${reached}: rebuild it`);
    }
    await buildUpTo(context, build, reached);
    const snapshot = await context.pool.connect();
    try {
      // From here on reads of the live generation see it as of one moment, while its writer continues.
      await snapshot.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const live = await readLiveState(snapshot, projection);
      if (live === null) throw new ProjectionHalted(`${projection.name} has no live generation to compare with`);
      const { position } = live.checkpoint;
      await buildUpTo(context, build, position);
      const found = await compare(snapshot, build, live.generation);
      await snapshot.query('ROLLBACK');
      snapshot.release();
      return { keep: false, result: { projection: projection.name, position, ...found } };
    } catch (error) {
      snapshot.release(true);
      throw error;
    }
  });
}

async function readLivePosition({ client, generation }: Build): Promise<LogPosition> {
  const live = await readLiveState(client, generation.projection);
  if (live === null) throw new ProjectionHalted(`${generation.projection.name} has no live generation to compare with`);
  return live.checkpoint.position;
}

async function compare(
  snapshot: PoolClient,
  { client, generation }: Build,
  liveGeneration: number,
): Promise<Pick<Verification, 'rows' | 'differences' | 'examples'>> {
  const { projection } = generation;
  const examples: RowDifference[] = [];
  let rows = 0;
  let differences = 0;
  for (const table of projection.tables) {
    const name = tablesOf(generation)(table.name);
    const from = await firstCompared(client, name, table);
    const live = digests(snapshot, tablesOf({ projection, number: liveGeneration })(table.name), table, from);
    const built = digests(client, name, table, from);
    for await (const pair of pairUp(live, built)) {
      if (pair.built !== null) rows += 1;
      const kind = differenceOf(pair, table);
      if (kind === null) continue;
      differences += 1;
      const key = (pair.live ?? pair.built)?.key ?? '';
      if (examples.length < EXAMPLES_MAX) examples.push({ table: table.name, key, kind });
    }
  }
  return { rows, differences, examples };
}

interface RowDigest {
  /** A digest of the key: orders the rows of both sides equally, whatever the collation. */
  readonly place: string;
  readonly key: string;
  readonly digest: string;
}

interface Pair {
  readonly live: RowDigest | null;
  readonly built: RowDigest | null;
}

function differenceOf({ live, built }: Pair, table: ProjectionTable): RowDifference['kind'] | null {
  if (live === null) return 'missing';
  if (built === null) return table.compare === 'exact' ? 'extra' : null;
  return live.digest === built.digest ? null : 'different';
}

/** Returns the time from which on no row may be missing; null if none may. */
async function firstCompared(client: PoolClient, name: string, { ages }: ProjectionTable): Promise<Timestamp | null> {
  if (ages === undefined) return null;
  const { rows } = await client.query<{ newest: string | null }>(`SELECT max(${ages.column}) AS newest FROM ${name}`);
  const newest = rows[0]?.newest ?? null;
  return newest === null ? null : plusMs(timestamp(newest), -ages.keptMs);
}

/** Yields the rows of a table from a time on in the order of their key's digest, read through a cursor. */
async function* digests(
  client: PoolClient,
  name: string,
  table: ProjectionTable,
  from: Timestamp | null,
): AsyncGenerator<RowDigest> {
  const inSnapshot = client.getTransactionStatus() === 'T';
  if (!inSnapshot) await client.query('BEGIN READ ONLY');
  const key = `ROW(${table.key.join(', ')})::text`;
  await client.query(
    `DECLARE digests NO SCROLL CURSOR FOR SELECT md5(${key}) COLLATE "C" AS place, ${key} AS key, md5(t::text) AS digest
      FROM ${name} AS t ${from === null ? '' : `WHERE ${table.ages?.column} >= $1`} ORDER BY place`,
    from === null ? [] : [from],
  );
  for (;;) {
    const { rows } = await client.query<{ place: string; key: string; digest: string }>(
      `FETCH ${FETCH_ROWS} FROM digests`,
    );
    yield* rows;
    if (rows.length < FETCH_ROWS) break;
  }
  await client.query('CLOSE digests');
  if (!inSnapshot) await client.query('COMMIT');
}

/** Pairs the rows with the same key; both sides must be in the order of `place`. */
async function* pairUp(live: AsyncGenerator<RowDigest>, built: AsyncGenerator<RowDigest>): AsyncGenerator<Pair> {
  let left = await live.next();
  let right = await built.next();
  while (left.done !== true || right.done !== true) {
    const l = left.done === true ? null : left.value;
    const r = right.done === true ? null : right.value;
    if (r === null || (l !== null && l.place < r.place)) {
      yield { live: l, built: null };
      left = await live.next();
    } else if (l === null || r.place < l.place) {
      yield { live: null, built: r };
      right = await built.next();
    } else {
      yield { live: l, built: r };
      left = await live.next();
      right = await built.next();
    }
  }
}
