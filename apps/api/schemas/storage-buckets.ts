/** Storage buckets on the wire. */
import { z } from 'zod';
import { BUCKET_AUTH_MODES, BUCKET_PROVIDERS } from '../../../core/account/buckets/settings.ts';
import type { StorageBucketId } from '../../../core/kernel/ids.ts';
import {
  BUCKET_ACCESS_KEY_ID_LENGTH_MAX,
  BUCKET_KEY_PREFIX_LENGTH_MAX,
  BUCKET_REGION_LENGTH_MAX,
  BUCKET_ROLE_ARN_LENGTH_MAX,
  BUCKET_SECRET_KEY_LENGTH_MAX,
  OUTGOING_URL_LENGTH_MAX,
  STORAGE_BUCKET_NAME_LENGTH_MAX,
} from '../../../core/kernel/limits.ts';
import { ID, idSchema, LIMIT, OFFSET, OFFSET_PAGINATION, TIMESTAMP } from './common.ts';

const PROVIDER = z.enum(BUCKET_PROVIDERS).meta({ description: 'S3: Amazon S3. R2: Cloudflare R2. MINIO: MinIO.' });
const AUTH_MODE = z.enum(BUCKET_AUTH_MODES).meta({
  description: 'OIDC: a role that trusts this service, for S3 only; no key is stored. STATIC_KEYS: an access key.',
});

const FIELDS = {
  id: ID,
  name: z.string(),
  provider: PROVIDER,
  auth_mode: AUTH_MODE,
  bucket_name: z.string(),
  key_prefix: z.string().meta({ description: 'Empty, or ends in `/`. Every key of this service starts with it.' }),
  role_arn: z.string().nullable(),
  region: z.string().nullable().meta({ description: 'Null with OIDC: the platform finds it.' }),
  endpoint_url: z.string().nullable().meta({ description: "Null: Amazon's." }),
  access_key_id: z.string().nullable(),
  is_default: z.boolean(),
  status: z.enum(['PENDING_VERIFICATION', 'VERIFIED', 'FAILED']),
  last_validated_at: TIMESTAMP.nullable().meta({ description: 'When a verification last succeeded.' }),
  last_error: z
    .string()
    .nullable()
    .meta({
      description: 'The step at which the last verification of the current settings failed, and why.',
      examples: ['Step put: The provider denied access'],
    }),
  repository_count: z.int().nonnegative().meta({ description: 'The repositories in the bucket that the token sees.' }),
  created_at: TIMESTAMP,
  updated_at: TIMESTAMP,
};

export const STORAGE_BUCKET = z.object(FIELDS).meta({ id: 'StorageBucket' });
export const STORAGE_BUCKETS = z.object({ storage_buckets: z.array(STORAGE_BUCKET) }).meta({ id: 'StorageBucketList' });

const text = (lengthMax: number, description: string) =>
  z.string().max(lengthMax).meta({ description, maxLength: lengthMax });

const SETTINGS = {
  provider: PROVIDER,
  auth_mode: AUTH_MODE,
  bucket_name: z.string().meta({ description: 'As its provider names it.', minLength: 3, maxLength: 63 }),
  key_prefix: text(BUCKET_KEY_PREFIX_LENGTH_MAX, 'A slash is added at its end.'),
  role_arn: text(BUCKET_ROLE_ARN_LENGTH_MAX, 'Needed with OIDC.').nullable(),
  region: text(BUCKET_REGION_LENGTH_MAX, 'Needed with STATIC_KEYS.').nullable(),
  endpoint_url: text(OUTGOING_URL_LENGTH_MAX, 'HTTPS, a host and perhaps a port; needed with R2 and MINIO.').nullable(),
  access_key_id: text(BUCKET_ACCESS_KEY_ID_LENGTH_MAX, 'Needed with STATIC_KEYS.').nullable(),
  secret_access_key: text(BUCKET_SECRET_KEY_LENGTH_MAX, 'Needed with STATIC_KEYS. No answer shows it.').nullable(),
};
const NAME = z.string().meta({
  description: 'A label, unique in the account without case. It stays in the record of the account.',
  minLength: 1,
  maxLength: STORAGE_BUCKET_NAME_LENGTH_MAX,
});
const IS_DEFAULT = z.boolean().meta({ description: 'Repositories whose creator names no bucket are in this one.' });

export const NEW_STORAGE_BUCKET = z.object({
  name: NAME,
  ...SETTINGS,
  key_prefix: SETTINGS.key_prefix.default(''),
  role_arn: SETTINGS.role_arn.default(null),
  region: SETTINGS.region.default(null),
  endpoint_url: SETTINGS.endpoint_url.default(null),
  access_key_id: SETTINGS.access_key_id.default(null),
  secret_access_key: SETTINGS.secret_access_key.default(null),
  is_default: IS_DEFAULT.default(false),
});
export const STORAGE_BUCKET_CHANGES = z.object({ name: NAME, ...SETTINGS, is_default: IS_DEFAULT }).partial();

export const BUCKET_ERRORS_QUERY = z.object({
  limit: LIMIT,
  offset: OFFSET,
  storage_bucket_id: idSchema<StorageBucketId>('Only errors of this bucket.').optional(),
});

export const BUCKET_ERRORS = z
  .object({
    errors: z.array(
      z.object({
        id: ID,
        storage_bucket_id: ID,
        repository_id: ID.nullable().meta({ description: 'Null for a verification.' }),
        operation: z.enum(['verify', 'push', 'read', 'maintenance']),
        code: z.string(),
        message: z.string(),
        occurred_at: TIMESTAMP,
      }),
    ),
    pagination: OFFSET_PAGINATION,
  })
  .meta({ id: 'StorageBucketErrorList' });

export const OIDC_SETUP = z
  .object({
    issuer: z.string().meta({ description: 'Must be reachable for the cloud: public https, without a port.' }),
    audience: z.string(),
    subject: z.string(),
    trust_policy: z
      .looseObject({})
      .meta({ description: "For the role's trust relationship; put in your AWS account." }),
  })
  .meta({ id: 'OidcSetup' });
