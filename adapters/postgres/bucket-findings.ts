/** What verifications found out about buckets, on PostgreSQL (core/ports/bucket-findings.ts). */
import type pg from 'pg';
import { type BucketFindingRows, BucketFindingsError } from '../../core/ports/bucket-findings.ts';
import { queryReporting, unavailable } from './outages.ts';

const query = queryReporting(
  unavailable(BucketFindingsError, 'bucket-findings-unavailable', 'What is known of buckets cannot be reached'),
);

const NOTE = `
  INSERT INTO bucket_findings (account_id, bucket_id, place_ref, conditional_writes, checks_bodies)
  VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (account_id, bucket_id) DO UPDATE
  SET place_ref = excluded.place_ref, conditional_writes = excluded.conditional_writes,
    checks_bodies = excluded.checks_bodies`;

const FIND = `
  SELECT conditional_writes, checks_bodies FROM bucket_findings
  WHERE account_id = $1 AND bucket_id = $2 AND place_ref = $3`;

interface Row {
  readonly conditional_writes: boolean;
  readonly checks_bodies: boolean;
}

/** `pool` must be of a migrated database; the caller closes it. */
export function createPostgresBucketFindings(pool: pg.Pool): BucketFindingRows {
  return {
    async note({ account, bucket, place }, { conditionalWrites, checksBodies }) {
      await query(pool, NOTE, [account, bucket, place, conditionalWrites, checksBodies]);
    },
    async find({ account, bucket, place }) {
      const [row] = (await query<Row>(pool, FIND, [account, bucket, place])).rows;
      if (row === undefined) return null;
      return { conditionalWrites: row.conditional_writes, checksBodies: row.checks_bodies };
    },
    async remove(account, bucket) {
      const text = 'DELETE FROM bucket_findings WHERE account_id = $1 AND ($2::uuid IS NULL OR bucket_id = $2)';
      await query(pool, text, [account, bucket]);
    },
  };
}
