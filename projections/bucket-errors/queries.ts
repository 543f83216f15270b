/** The query of what went wrong with storage buckets. */
import type { Page, PageOf } from '../../core/kernel/page.ts';
import type { BucketErrorRow, WantedBucketErrors } from '../../core/ports/bucket-error-lists.ts';
import type { LiveReader, ReadQuery } from '../live-reader.ts';
import { ERRORS, VERIFICATIONS } from './table.ts';

const errorsQuery: ReadQuery = {
  answer: (table) => {
    const both = [ERRORS, VERIFICATIONS].map(({ name }) => `SELECT * FROM ${table(name)}`).join(' UNION ALL ');
    const from = `FROM (${both}) AS errors
      WHERE account_id = $1 AND bucket_id = ANY ($2::uuid[])
        AND ($3::uuid[] IS NULL OR repository_id IS NULL OR repository_id = ANY ($3::uuid[]))`;
    return `SELECT json_build_object('total', (SELECT count(*) ${from}), 'items', (
      SELECT coalesce(json_agg(error), '[]') FROM (
        SELECT id, bucket_id AS bucket, repository_id AS repository, operation, step, code, occurred_at AS "occurredAt"
        ${from} ORDER BY position DESC, id DESC LIMIT $4 OFFSET $5) AS error))`;
  },
};

export async function readBucketErrors(
  reader: LiveReader,
  { account, buckets, repositories }: WantedBucketErrors,
  { offset, limit }: Page,
): Promise<PageOf<BucketErrorRow>> {
  const values = [account, buckets, repositories, limit, offset];
  const { value } = await reader.read(errorsQuery, values, () => ({ account }));
  return value as PageOf<BucketErrorRow>;
}
