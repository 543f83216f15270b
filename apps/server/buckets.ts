/** Composes the buckets of users. */
import { type BucketChecks, createBucketChecks } from '../../core/use-cases/buckets/bucket-checks.ts';

/** No adapter reaches buckets yet, so every verification fails and says so. */
export function composeBucketChecks(): BucketChecks {
  return createBucketChecks({
    check: async () => ({
      step: 'credentials',
      code: 'failed',
      message: 'This server does not reach storage buckets yet',
    }),
  });
}
