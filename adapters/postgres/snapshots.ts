/**
 * Snapshots of long streams on PostgreSQL; deleting them loses nothing (core/ports/snapshots.ts).
 *
 * Invariants: the text is the canonical JSON of the state on one line, and of each part on a line of its own. Neither
 * saving nor reading holds up the event loop for the text of more than a few parts at a time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type pg from 'pg';
import type { Parts } from '../../core/kernel/decider.ts';
import type { StreamName } from '../../core/kernel/envelope.ts';
import { canonicalJson, type JsonValue } from '../../core/kernel/json.ts';
import { SNAPSHOT_INTERVAL_EVENTS } from '../../core/kernel/limits.ts';
import { thinnedOut } from '../../core/kernel/thinned.ts';
import type { Snapshot, Snapshots } from '../../core/ports/snapshots.ts';
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
      return { stream, codeVersion, revision: newest.revision, ...parseText(newest.state) };
    },
    save: async ({ stream, codeVersion, revision, state, parts }) => {
      const text = await textOf(state, parts ?? []);
      // Idempotent, so it may be retried.
      await retryRepeatable(RETRY_SPAN_MS, () =>
        pool.query(
          `INSERT INTO snapshots (stream, code_version, revision, state) VALUES ($1, $2, $3, $4)
           ON CONFLICT (stream, code_version, revision) DO NOTHING`,
          [stream, codeVersion, revision, text],
        ),
      );
      await retryRepeatable(RETRY_SPAN_MS, () => thinOut(pool, stream, codeVersion));
    },
  };
}

/** Parts of one turn of the event loop: together some 200 KB. */
const TURN_PARTS = 4;

/** Returns the text as bytes, which the client sends without encoding all of it in one go. */
async function textOf(state: JsonValue, parts: Parts): Promise<Buffer> {
  const lines = [Buffer.from(canonicalJson(state))];
  for await (const part of parts) {
    lines.push(Buffer.from(`\n${canonicalJson(part)}`));
    if (lines.length % TURN_PARTS === 0) await nextTurn();
  }
  return Buffer.concat(lines);
}

function parseText(text: string): Pick<Snapshot, 'state' | 'parts'> {
  const end = text.indexOf('\n');
  if (end === -1) return { state: JSON.parse(text) as JsonValue };
  return { state: JSON.parse(text.slice(0, end)) as JsonValue, parts: parsedLines(text, end + 1) };
}

async function* parsedLines(text: string, from: number): AsyncGenerator<JsonValue> {
  let parsed = 0;
  for (let start = from; start < text.length; ) {
    const newline = text.indexOf('\n', start);
    const end = newline === -1 ? text.length : newline;
    yield JSON.parse(text.slice(start, end)) as JsonValue;
    start = end + 1;
    parsed += 1;
    if (parsed % TURN_PARTS === 0) await nextTurn();
  }
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
