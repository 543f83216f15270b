/**
 * What is wrong with the bucket of a repository, in plain words for who pushes or reads.
 *
 * Invariants: no text names the place of a bucket, its role or its keys; what a provider says is in none.
 */
import { LayerStoreError, type LayerStoreErrorCode } from '../../../core/ports/layer-store.ts';
import { ObjectDatabaseError } from '../../../core/ports/object-database.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';

interface BucketOutage {
  /** Words that follow the name of a bucket. */
  readonly what: string;
  /** Whether a retry helps, or only what the owner of the bucket does. */
  readonly helps: 'retry' | 'owner';
}

const NO_CREDENTIALS: BucketOutage = { what: "refuses the service's credentials", helps: 'owner' };
const NO_OBJECT: BucketOutage = { what: 'lacks stored objects of this repository', helps: 'owner' };
const OTHER_OBJECT: BucketOutage = { what: 'holds altered objects of this repository', helps: 'owner' };

/** What the store of a repository's layers does, by the code of its error. */
export const BUCKET_OUTAGES: { readonly [Code in LayerStoreErrorCode]: BucketOutage } = {
  'bucket-missing': { what: 'does not exist', helps: 'owner' },
  'access-denied': { what: 'denies access', helps: 'owner' },
  'get-denied': { what: 'denies reading objects (s3:GetObject)', helps: 'owner' },
  'head-denied': { what: 'denies looking for objects (s3:GetObject and s3:ListBucket)', helps: 'owner' },
  'put-denied': { what: 'denies storing objects (s3:PutObject)', helps: 'owner' },
  'delete-denied': { what: 'denies deleting objects (s3:DeleteObject)', helps: 'owner' },
  'list-denied': { what: 'denies listing objects (s3:ListBucket)', helps: 'owner' },
  'credentials-invalid': NO_CREDENTIALS,
  'credentials-refused': NO_CREDENTIALS,
  'wrong-region': { what: 'is in another region than its settings say', helps: 'owner' },
  'clock-skewed': { what: 'has a clock that differs too much', helps: 'retry' },
  throttled: { what: 'takes no more requests now', helps: 'retry' },
  'timed-out': { what: 'takes too long to answer', helps: 'retry' },
  'certificate-invalid': { what: 'has no valid certificate', helps: 'owner' },
  'target-refused': { what: 'has an address that is not allowed', helps: 'owner' },
  unreachable: { what: 'cannot be reached', helps: 'retry' },
  'not-s3': { what: 'does not answer as a bucket does', helps: 'owner' },
  'layer-not-found': NO_OBJECT,
  'layer-store-full': { what: 'has no room left', helps: 'owner' },
  'layer-store-refused': { what: 'refuses what the service asks of it', helps: 'owner' },
  'multipart-missing': { what: 'takes no uploads in parts and so no large push', helps: 'owner' },
  'layer-store-unavailable': { what: 'does not work', helps: 'retry' },
  'range-not-satisfiable': NO_OBJECT,
};

function outageOf(error: unknown): BucketOutage | null {
  if (error instanceof LayerStoreError) return BUCKET_OUTAGES[error.code];
  if (!(error instanceof ObjectDatabaseError)) return null;
  if (error.code === 'layer-missing') return NO_OBJECT;
  if (error.code === 'layer-corrupt') return OTHER_OBJECT;
  return error.cause instanceof LayerStoreError ? BUCKET_OUTAGES[error.cause.code] : null;
}

/**
 * Returns a line about the bucket of a repository; null if the repository is in none, or the error is not the bucket's.
 */
export function bucketOutageLine(
  { account, owned: { storageBucketId } }: Pick<FoundRepository, 'account' | 'owned'>,
  error: unknown,
): string | null {
  const outage = storageBucketId === null ? null : outageOf(error);
  if (storageBucketId === null || outage === null) return null;
  const name = account.storageBuckets.get(storageBucketId)?.name ?? storageBucketId;
  const bucket = `the storage bucket "${name}" ${outage.what}`;
  return outage.helps === 'retry'
    ? `${bucket}: try again; its owner finds the errors on its page`
    : `${bucket}: its owner must act, and finds the errors on its page`;
}
