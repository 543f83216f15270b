/**
 * Records that a storage bucket failed a repository's push, read or upkeep, for the list of its errors.
 *
 * Invariants: a dead bucket with a busy repository adds a bounded number of events. What is known to be recorded
 * already costs no call to the log.
 */
import { decideBucketError } from '../../bucket-errors/decide.ts';
import { bucketErrors, bucketErrorsOn } from '../../bucket-errors/evolve.ts';
import type { BucketFaultCode, BucketOperation } from '../../kernel/bucket-fault.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, RepositoryId, StorageBucketId } from '../../kernel/ids.ts';
import type { Background } from '../../ports/background.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { systemCause } from '../../runtime/system-cause.ts';

/**
 * Errors of buckets that a node records at the same time; what fails beside them is not recorded. Internal: it bounds
 * what a node notes of failing buckets.
 */
export const BUCKET_ERRORS_AT_ONCE_MAX = 32;

export interface BucketError {
  readonly bucket: StorageBucketId;
  /** Null if the error concerns no single repository. */
  readonly repository: RepositoryId | null;
  readonly operation: BucketOperation;
  readonly code: BucketFaultCode;
}

/** Resolves when the error is in the log, or need not be. `cause` is that of the operation that failed. */
export async function recordBucketError(
  context: Context,
  about: { readonly account: AccountId; readonly cause: Cause },
  { bucket, repository, operation, code }: BucketError,
): Promise<void> {
  const now = context.clock.now();
  const id = bucketErrorsOn(bucket, now);
  const data = { bucket_id: bucket, repository_id: repository, operation, code };
  // The log only grows, so what an older state has recorded is recorded.
  const { state } = await context.entities.get(bucketErrors, id);
  const known = decideBucketError(state, data, now);
  if ('refused' in known || known.events.length === 0) return;
  const recorded = await execute(context, bucketErrors, id, about, (errors) => decideBucketError(errors, data, now));
  if ('refused' in recorded) throw new TypeError(`An error of a bucket was refused: ${recorded.refused.code}`);
}

/**
 * Returns a function that records errors in the background. It keeps an error that is being recorded from being
 * recorded again in between, so that a burst of failures costs one.
 */
export function createBucketErrors(
  context: Context & { readonly background: Background },
): (account: AccountId, error: BucketError) => void {
  const underWay = new Set<string>();
  return (account, error) => {
    const key = [error.bucket, error.repository, error.operation, error.code].join(' ');
    if (underWay.has(key) || underWay.size >= BUCKET_ERRORS_AT_ONCE_MAX) return;
    underWay.add(key);
    context.background.run('bucket-error', async () => {
      try {
        await recordBucketError(context, { account, cause: systemCause(context.ids, 'bucket-errors') }, error);
      } finally {
        underWay.delete(key);
      }
    });
  };
}
