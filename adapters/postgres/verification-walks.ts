/** The walks of the verification, as rows of PostgreSQL (core/ports/verification-walks.ts). */
import type pg from 'pg';
import { type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import { type VerificationWalks, WALK_HELD_MS } from '../../core/ports/verification-walks.ts';

const HELD_UNTIL = `clock_timestamp() + interval '${WALK_HELD_MS} milliseconds'`;

const TAKE = `
  INSERT INTO verification_walks AS w (walk, process, held_until) VALUES ($1, $2, ${HELD_UNTIL})
  ON CONFLICT (walk) DO UPDATE SET process = excluded.process, held_until = excluded.held_until
    WHERE w.process IS NULL OR w.process = excluded.process OR w.held_until < clock_timestamp()
  RETURNING w.begun_at, w.cursor, w.whole_since`;

const READ = 'SELECT begun_at, cursor, whole_since FROM verification_walks WHERE walk = $1';

// A round that an operator asked for may have ended since the walk was taken.
const SAVE = `
  UPDATE verification_walks SET begun_at = $3, cursor = $4, whole_since = greatest(whole_since, $5),
    held_until = ${HELD_UNTIL}
  WHERE walk = $1 AND process = $2`;

const WALKED = `
  INSERT INTO verification_walks AS w (walk, whole_since) VALUES ($1, $2)
  ON CONFLICT (walk) DO UPDATE SET whole_since = greatest(w.whole_since, excluded.whole_since)`;

interface Row {
  readonly begun_at: string | null;
  readonly cursor: string | null;
  readonly whole_since: string | null;
}

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresVerificationWalks(pool: pg.Pool): VerificationWalks {
  return {
    async take(walk, process) {
      const [taken] = (await pool.query<Row>(TAKE, [walk, process])).rows;
      const row = taken ?? (await pool.query<Row>(READ, [walk])).rows[0];
      const { begun_at = null, cursor = null, whole_since = null } = row ?? {};
      return { isHeld: taken !== undefined, begunAt: timeOf(begun_at), cursor, wholeSince: timeOf(whole_since) };
    },
    async save(walk, process, { begunAt, cursor, wholeSince }) {
      return (await pool.query(SAVE, [walk, process, begunAt, cursor, wholeSince])).rowCount === 1;
    },
    async walked(walk, since) {
      await pool.query(WALKED, [walk, since]);
    },
  };
}

function timeOf(text: string | null): Timestamp | null {
  return text === null ? null : timestamp(text);
}
