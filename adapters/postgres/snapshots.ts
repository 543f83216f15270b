/** Snapshots of long streams on PostgreSQL; deleting them loses nothing (core/ports/snapshots.ts). */
import type pg from 'pg';
import type { StreamName } from '../../core/kernel/envelope.ts';
import { canonicalJson, type JsonValue } from '../../core/kernel/json.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../../core/kernel/limits.ts';
import { thinnedOut } from '../../core/kernel/thinned.ts';
import type { Snapshots } from '../../core/ports/snapshots.ts';
import { retryRepeatable } from './retry.ts';

const RETRY_SPAN_MS = 5_000;

/**
 * Keeps snapshots in a migrated database; the caller closes the pool. Both operations throw `EventStoreError` with
 * `log-unavailable` when PostgreSQL cannot be reached.
 */
export function createPostgresSnapshots(pool: pg.Pool): Snapshots {
  return {
    latest: async (stream, codeVersion, upTo) => {
      const { rows } = await retryRepeatable(RETRY_SPAN_MS, () =>
        pool.query<{ revision: number; state: string }>(
          `SELECT revision, state FROM snapshots
           WHERE stream = $1 AND code_version = $2 AND ($3::integer IS NULL OR revision <= $3)
           ORDER BY revision DESC LIMIT 1`,
          [stream, codeVersion, upTo ?? null],
        ),
      );
      const [newest] = rows;
      if (newest === undefined) return null;
      return { stream, codeVersion, revision: newest.revision, state: JSON.parse(newest.state) as JsonValue };
    },
    save: async ({ stream, codeVersion, revision, state }) => {
      const stateText = canonicalJson(state);
      // Idempotent, so it may be retried.
      await retryRepeatable(RETRY_SPAN_MS, () =>
        pool.query(
          `INSERT INTO snapshots (stream, code_version, revision, state) VALUES ($1, $2, $3, $4)
           ON CONFLICT (stream, code_version, revision) DO NOTHING`,
          [stream, codeVersion, revision, stateText],
        ),
      );
      await retryRepeatable(RETRY_SPAN_MS, () => thinOut(pool, stream, codeVersion));
    },
  };
}

/** Drops snapshots of older code versions too: no newer program reads them. */
async function thinOut(pool: pg.Pool, stream: StreamName, codeVersion: number): Promise<void> {
  await pool.query('DELETE FROM snapshots WHERE stream = $1 AND code_version < $2', [stream, codeVersion]);
  const kept = await pool.query<{ revision: number }>(
    'SELECT revision FROM snapshots WHERE stream = $1 AND code_version = $2',
    [stream, codeVersion],
  );
  const revisions = kept.rows.map(({ revision }) => revision);
  const dropped = thinnedOut(revisions, SNAPSHOT_INTERVAL_EVENTS);
  if (dropped.length === 0) return;
  await pool.query('DELETE FROM snapshots WHERE stream = $1 AND code_version = $2 AND revision = ANY ($3::integer[])', [
    stream,
    codeVersion,
    dropped,
  ]);
}
