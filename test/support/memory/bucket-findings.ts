/** What verifications found out about buckets, in memory. */
import type { BucketFindingRows, BucketFindings, FoundAt } from '../../../core/ports/bucket-findings.ts';

export function createMemoryBucketFindings(): BucketFindingRows {
  let rows: readonly (FoundAt & { readonly findings: BucketFindings })[] = [];
  return {
    note: async (at, findings) => {
      rows = [...rows.filter(({ bucket }) => bucket !== at.bucket), { ...at, findings }];
    },
    find: async ({ account, bucket, place }) =>
      rows.find((row) => row.account === account && row.bucket === bucket && row.place === place)?.findings ?? null,
    remove: async (account, bucket) => {
      rows = rows.filter((row) => row.account !== account || (bucket !== null && row.bucket !== bucket));
    },
  };
}
