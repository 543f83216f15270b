/** A bucket of a user's on a real S3 server, and repositories in it, made over REST as the user makes them. */
import { type Account, type ApiAnswer, api, gitUrl, type Strata } from './strata.ts';
import type { S3Server } from './versitygw.ts';

const BUCKETS = '/v1/storage-buckets';

/** Servers send nothing to an S3 server on this machine without it. */
export const BUCKET_ENV = { STRATA_ALLOW_PRIVATE_TARGETS: 'true' };

export interface UserBucket {
  readonly id: string;
  verify(strata: Pick<Strata, 'url'>): Promise<ApiAnswer>;
  /** Creates a repository in it, and returns its URL for git, with credentials. */
  create(strata: Pick<Strata, 'url'>, name: string): Promise<string>;
}

/** Where an account finds a bucket, and what it calls it. */
export interface BucketPlace {
  readonly name: string;
  readonly prefix: string;
  readonly url: string;
}

/** Makes a bucket of an account, which is not verified yet. */
export async function newUserBucket(
  strata: Pick<Strata, 'url'>,
  account: Account,
  s3: S3Server,
  { name: label, prefix, url }: BucketPlace,
): Promise<UserBucket> {
  const made = await api(strata, account.token, 'POST', BUCKETS, {
    ...{ name: label, provider: 'MINIO', auth_mode: 'STATIC_KEYS', bucket_name: s3.bucket, key_prefix: prefix },
    ...{ region: s3.region, endpoint_url: url },
    ...{ access_key_id: s3.accessKeyId, secret_access_key: s3.secretAccessKey },
  });
  if (made.status !== 201) throw new Error(`The bucket was not created: ${made.status} ${made.text}`);
  const { id } = made.body as { readonly id: string };
  return {
    id,
    verify: (at) => api(at, account.token, 'POST', `${BUCKETS}/${id}/verify`),
    async create(at, name) {
      const body = { name, storage_bucket_id: id };
      const created = await api(at, account.token, 'POST', '/v1/repositories', body);
      if (created.status !== 201) throw new Error(`The repository was not created: ${created.status} ${created.text}`);
      return gitUrl(at, account, name);
    },
  };
}

/** Makes a bucket of an account, and has it verified. */
export async function createUserBucket(
  strata: Pick<Strata, 'url'>,
  account: Account,
  s3: S3Server,
): Promise<UserBucket> {
  const bucket = await newUserBucket(strata, account, s3, { name: 'Home', prefix: 'own', url: s3.url });
  const verified = await bucket.verify(strata);
  if (verified.status !== 200) throw new Error(`The bucket was not verified: ${verified.status} ${verified.text}`);
  return bucket;
}
