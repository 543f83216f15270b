/** Makes storage buckets of an account, and repositories in them, on a test node. */
import { ALL_REPOSITORIES } from '../../core/access-token/repository-selection.ts';
import type { AccountId, StorageBucketId } from '../../core/kernel/ids.ts';
import { createBucket } from '../../core/use-cases/buckets/buckets.ts';
import { type VerifyContext, verifyBucket } from '../../core/use-cases/buckets/verify-bucket.ts';
import { createRepository, type FoundRepository } from '../../core/use-cases/repositories/repositories.ts';
import { accepted } from './accounts.ts';
import { LACKS_NOTHING } from './memory/buckets.ts';
import { CAUSE } from './node.ts';

const KEYS_SETTINGS = {
  provider: 'MINIO',
  authMode: 'STATIC_KEYS',
  keyPrefix: 'git/',
  roleArn: null,
  region: 'us-east-1',
  endpointUrl: 'https://s3.example.org',
  accessKeyId: 'AKIAFIRST',
  secretAccessKey: 'first-secret',
} as const;

/** Makes a bucket that is verified, under this label of the account. */
export async function newBucket(
  node: Omit<VerifyContext, 'outgoing' | 'bucketChecks'>,
  account: AccountId,
  name: string,
): Promise<StorageBucketId> {
  const origin = { account, cause: CAUSE, selection: ALL_REPOSITORIES };
  const context = {
    ...node,
    outgoing: { checkEndpoint: async () => null },
    bucketChecks: { check: async () => ({ findings: LACKS_NOTHING }) },
  };
  const settings = { ...KEYS_SETTINGS, bucketName: 'layers' };
  const { id } = accepted(await createBucket(context, origin, { name, isDefault: false, settings })).bucket;
  accepted(await verifyBucket(context, origin, id, 'https://strata.example.org'));
  return id;
}

export async function newRepositoryIn(
  node: Parameters<typeof createRepository>[0],
  account: AccountId,
  storageBucketId: StorageBucketId,
  name: string,
): Promise<FoundRepository> {
  const wanted = { name, description: null, defaultBranch: null, storageBucketId };
  return accepted(await createRepository(node, { account, cause: CAUSE }, wanted));
}
