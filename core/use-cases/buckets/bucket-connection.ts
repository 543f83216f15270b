/** How a bucket of a user is reached with its stored settings. */
import type { BucketSettings } from '../../account/buckets/settings.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { BucketConnection } from '../../ports/buckets.ts';

/** The connection holds the secret key. */
export function connectionOf(account: AccountId, { place, access }: BucketSettings): BucketConnection {
  const { bucketName, keyPrefix, endpointUrl } = place;
  if (access.mode === 'STATIC_KEYS') return { bucketName, keyPrefix, access: { ...access, endpointUrl } };
  return { bucketName, keyPrefix, access: { ...access, account } };
}
