/**
 * The repositories whose manifest is to be written, on PostgreSQL (core/ports/manifest-writes.ts). They are also the
 * rows of the workflow that writes manifests.
 */
import type pg from 'pg';
import {
  type ManifestStep,
  type ManifestWrite,
  type ManifestWrites,
  ManifestWritesError,
} from '../../core/ports/manifest-writes.ts';
import type { OverdueTimers, WaitingRows } from '../../core/ports/workflows.ts';
import { queryReporting, unavailable } from './outages.ts';
import { createWaitingRows } from './waiting-rows.ts';

const query = queryReporting(unavailable(ManifestWritesError, 'manifest-writes-unavailable'));

/** In the order of the ids, so that two nodes that add the same rows cannot lock each other out. */
const WANT = `
  INSERT INTO manifest_writes AS known (id, account, due_at)
  SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[]) AS wanted (id, account, due_at) ORDER BY id
  ON CONFLICT (id) DO UPDATE
  SET due_at = LEAST(known.due_at, excluded.due_at), revision = known.revision + 1, told = NULL`;

const LATER = `
  UPDATE manifest_writes SET due_at = $3, failures = 0, revision = revision + 1, told = NULL
  WHERE id = $1 AND revision = $2`;

const AGAIN = `
  UPDATE manifest_writes SET due_at = GREATEST(due_at, $2), failures = 0, revision = revision + 1, told = NULL
  WHERE id = $1`;

const FAILED = `
  UPDATE manifest_writes SET due_at = $2, failures = failures + 1, revision = revision + 1, told = NULL
  WHERE id = $1`;

export type PostgresManifestWrites = ManifestWrites & OverdueTimers & WaitingRows<ManifestStep>;

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresManifestWrites(pool: pg.Pool): PostgresManifestWrites {
  return {
    ...createWaitingRows<ManifestStep>({ pool, query, table: 'manifest_writes', step: `'write'` }),
    async want(wanted) {
      if (wanted.length === 0) return;
      const columns = [
        wanted.map(({ repository }) => repository),
        wanted.map(({ account }) => account),
        wanted.map(({ dueAt }) => dueAt),
      ];
      await query(pool, WANT, columns);
    },
    async find(repository) {
      const text = 'SELECT account, id AS repository, failures FROM manifest_writes WHERE id = $1';
      return (await query<ManifestWrite>(pool, text, [repository])).rows[0] ?? null;
    },
    async done(repository, revision, { nextAt, againAt }) {
      const { rowCount } =
        nextAt === null
          ? await query(pool, 'DELETE FROM manifest_writes WHERE id = $1 AND revision = $2', [repository, revision])
          : await query(pool, LATER, [repository, revision, nextAt]);
      if (rowCount === 0) await query(pool, AGAIN, [repository, againAt]);
    },
    async failed(repository, dueAt) {
      await query(pool, FAILED, [repository, dueAt]);
    },
  };
}
