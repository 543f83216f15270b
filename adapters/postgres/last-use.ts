/**
 * Last use of access tokens, gathered in memory and written in one statement a minute.
 *
 * Must stay true: a request never waits for it; what is stored never goes back; a crash loses at most what one
 * flush would have written.
 */
import type pg from 'pg';
import { type AccessTokenId, type Timestamp, timestamp } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { LastUse } from '../../core/ports/last-use.ts';

export interface PostgresLastUse extends LastUse {
  /** Writes what was gathered; called every minute and at shutdown. Rejects when it could not: nothing is lost. */
  flush(): Promise<void>;
}

export function createPostgresLastUse(pool: pg.Pool, clock: Pick<Clock, 'now'>): PostgresLastUse {
  const touched = new Map<AccessTokenId, Timestamp>();
  return {
    touch(token) {
      touched.set(token, clock.now());
    },
    async lastUsedAt(tokens) {
      const { rows } = await pool.query<{ token_id: AccessTokenId; used_at: string }>(
        'SELECT token_id, used_at FROM token_last_use WHERE token_id = ANY($1::uuid[])',
        [tokens],
      );
      const found = new Map(rows.map((row) => [row.token_id, timestamp(row.used_at)]));
      for (const token of tokens) {
        const here = touched.get(token);
        if (here !== undefined && here > (found.get(token) ?? '')) found.set(token, here);
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
        // A use that came while this was written stays for the next time.
        if (touched.get(token) === usedAt) touched.delete(token);
      }
    },
  };
}
