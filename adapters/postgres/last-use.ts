/**
 * The last use of each access token and trust rule, collected in memory and written in one statement a minute.
 *
 * Invariants: no request waits for the write; a stored time never moves back; a crash loses at most the uses that
 * the next flush would have written.
 */
import type pg from 'pg';
import { type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { LastUse, Used } from '../../core/ports/last-use.ts';

export interface PostgresLastUse extends LastUse {
  /**
   * Writes the collected uses; the server calls it every minute and at shutdown. After a rejection the uses stay
   * collected for the next call.
   */
  flush(): Promise<void>;
}

export function createPostgresLastUse(pool: pg.Pool, clock: Pick<Clock, 'now'>): PostgresLastUse {
  const touched = new Map<Used, Timestamp>();
  return {
    touch(used) {
      touched.set(used, clock.now());
    },
    async lastUsedAt(ids) {
      const { rows } = await pool.query<{ token_id: Used; used_at: string }>(
        'SELECT token_id, used_at FROM token_last_use WHERE token_id = ANY($1::uuid[])',
        [ids],
      );
      const found = new Map(rows.map((row) => [row.token_id, timestamp(row.used_at)]));
      for (const id of ids) {
        const usedAt = touched.get(id);
        if (usedAt !== undefined && usedAt > (found.get(id) ?? '')) found.set(id, usedAt);
      }
      return found;
    },
    async flush() {
      const batch = [...touched];
      if (batch.length === 0) return;
      await pool.query(
        `INSERT INTO token_last_use (token_id, used_at) SELECT * FROM unnest($1::uuid[], $2::text[])
         ON CONFLICT (token_id) DO UPDATE SET used_at = excluded.used_at
         WHERE token_last_use.used_at < excluded.used_at`,
        [batch.map(([token]) => token), batch.map(([, usedAt]) => usedAt)],
      );
      for (const [token, usedAt] of batch) {
        // A use during the write stays collected for the next flush.
        if (touched.get(token) === usedAt) touched.delete(token);
      }
    },
  };
}
