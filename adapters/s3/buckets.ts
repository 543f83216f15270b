/**
 * Buckets of users (core/ports/buckets.ts).
 *
 * Invariants: requests to an address that a user chose go only over the agents that check addresses. A store is
 * kept for as long as its connection is in use, so that the bound on its connections holds over all its callers.
 */
import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { countedCache } from '../../core/kernel/shown-caches.ts';
import type { BucketConnection, Buckets, RoleAccess, RoleCredentials, Roles } from '../../core/ports/buckets.ts';
import type { LayerStore } from '../../core/ports/layer-store.ts';
import type { S3Agents, S3Spans } from './bounded-handler.ts';
import { type BucketOptions, headBucket, openBucket } from './bucket.ts';
import { checkBucket } from './check-bucket.ts';
import type { S3ClientOptions } from './client.ts';
import { REGION, S3Failure, storeError } from './failures.ts';
import { createS3LayerStore } from './layer-store.ts';

/**
 * Buckets of users whose store a node keeps, and for how long: a connection with other credentials has another.
 * Internal: what is not kept is opened again.
 */
const BUCKET_STORES_MAX = 1_000;
const BUCKET_STORES_SPAN_MS = 60 * 60_000;

export interface BucketsOptions {
  readonly roles: Roles;
  /** Makes agents that connect only to checked addresses: for each bucket its own, so that none waits for another. */
  readonly checkedAgents: () => S3Agents;
  /** The endpoint for buckets with a role, which the operator chose; null: Amazon's. */
  readonly roleEndpointUrl: string | null;
  /** Shorter in tests. */
  readonly spans?: Partial<S3Spans>;
}

/** The vault alone has the names of users' buckets. */
const CALLED = 'a bucket of a user';
/** A check answers a person who waits. */
const CHECK_SPANS: Partial<S3Spans> = { connectMs: 5_000, answerMs: 20_000, stalledMs: 5_000 };

export function createS3Buckets(options: BucketsOptions): Buckets {
  const stores = countedCache(
    'bucket_stores',
    'entries',
    new LRUCache<string, LayerStore>({ max: BUCKET_STORES_MAX, ttl: BUCKET_STORES_SPAN_MS }),
  );
  return {
    check: (connection) => {
      const { access } = connection;
      if (access.mode === 'OIDC') options.roles.drop(access);
      return checkBucket(connection, () => bucketOptions(connection, options, { ...CHECK_SPANS, ...options.spans }));
    },
    store: (connection, findings) => {
      const key = createHash('sha256')
        .update(JSON.stringify([connection, findings]))
        .digest('hex');
      const known = stores.get(key);
      if (known !== undefined) return known;
      try {
        const opened = { ...bucketOptions(connection, options, options.spans ?? {}), findings };
        const store = createS3LayerStore(opened, CALLED);
        stores.set(key, store);
        return store;
      } catch (error) {
        throw error instanceof S3Failure ? storeError(error, CALLED) : error;
      }
    },
  };
}

/** Throws an `S3Failure` for a connection that no request may use. */
function bucketOptions(
  { bucketName, keyPrefix, access }: BucketConnection,
  { roles, checkedAgents, roleEndpointUrl }: BucketsOptions,
  spans: Partial<S3Spans>,
): BucketOptions {
  // An ARN, or a name with other characters, would choose another host.
  if (!BUCKET_NAME.test(bucketName)) throw new S3Failure('bucket-missing', 'No bucket can have this name');
  const place = { bucket: bucketName, prefix: keyPrefix, spans };
  if (access.mode === 'STATIC_KEYS') {
    const { endpointUrl, region, accessKeyId, secretAccessKey } = access;
    if (endpointUrl !== null && !ENDPOINT.test(endpointUrl)) {
      throw new S3Failure('target-refused', "The bucket's address is not https://host, with or without a port");
    }
    if (!REGION.test(region)) throw new S3Failure('wrong-region', 'No region can have this name');
    const credentials = { accessKeyId, secretAccessKey };
    const inPath = endpointUrl !== null && !REFUSES_PATHS.test(endpointUrl);
    const pathStyle = inPath || bucketName.includes('.');
    return { ...place, agents: checkedAgents(), endpointUrl, region, pathStyle, credentials };
  }
  const agents = roleEndpointUrl === null ? { agents: checkedAgents() } : {};
  const pathStyle = roleEndpointUrl !== null || bucketName.includes('.');
  const at = { ...place, ...agents, endpointUrl: roleEndpointUrl, pathStyle, ...roleCredentials(roles, access) };
  return { ...at, region: regionOf({ ...at, region: DEFAULT_REGION }) };
}

const BUCKET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{1,61}[A-Za-z0-9]$/;
const ENDPOINT = /^https?:\/\/[^/?#@\\\s]+\/?$/i;
/**
 * Endpoints of Alibaba Cloud OSS (https://help.aliyun.com/en/oss/developer-reference/overview-24) and of Tencent Cloud
 * COS (https://www.tencentcloud.com/document/product/436/75050), which refuse the bucket's name in the path. Other
 * hosts below these domains, such as those that name a bucket already, are not meant.
 */
const REFUSES_PATHS =
  /^https?:\/\/(?:(?:s3\.)?oss-[a-z0-9-]+\.aliyuncs\.com|cos\.[a-z0-9-]+\.myqcloud\.com)(?::\d+)?\/?$/i;
const DEFAULT_REGION = 'us-east-1';

/** Asks `roles` before each request, which keeps the credentials as long as they hold. */
function roleCredentials(roles: Roles, access: RoleAccess): Pick<BucketOptions, 'credentials' | 'renew'> {
  let last: RoleCredentials | undefined;
  return {
    credentials: async () => {
      last = await roles.credentials(access);
      const { accessKeyId, secretAccessKey, sessionToken } = last;
      // The SDK keeps no credentials that have expired.
      return { accessKeyId, secretAccessKey, sessionToken, expiration: new Date(0) };
    },
    renew: () => {
      if (last !== undefined) roles.drop(access, last);
    },
  };
}

/** The region that the bucket itself names, which is asked for once. */
function regionOf(options: BucketOptions): Extract<S3ClientOptions['region'], () => unknown> {
  let asked: Promise<string> | null = null;
  const ask = async (): Promise<string> => {
    const { headers, failure } = await headBucket(openBucket(options));
    const named = headers['x-amz-bucket-region'];
    if (named !== undefined && REGION.test(named)) return named;
    if (failure !== null) throw failure;
    return DEFAULT_REGION;
  };
  return () => {
    asked ??= ask().catch((error: unknown) => {
      asked = null;
      throw error;
    });
    return asked;
  };
}
