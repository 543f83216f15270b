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
  conditional_writes: z.boolean().nullable().meta({
    description:
      'Whether of several writers of a new key one alone succeeds. Without, the service looks first whether the key is free. Null: no verification at this place has found it out.',
  }),
  repository_count: z.int().nonnegative().meta({ description: 'The repositories in the bucket that the token sees.' }),
  created_at: TIMESTAMP,
  updated_at: TIMESTAMP,
};

export const STORAGE_BUCKET = z.object(FIELDS).meta({ id: 'StorageBucket' });
export const STORAGE_BUCKETS = z.object({ storage_buckets: z.array(STORAGE_BUCKET) }).meta({ id: 'StorageBucketList' });

const text = (lengthMax: number, description: string) =>
  z.string().max(lengthMax).meta({ description, maxLength: lengthMax });

const PREFIX_PATTERN = "^((?!\\.{1,2}(/|$))[A-Za-z0-9!_.*'()=-]+(/(?!\\.{1,2}(/|$))[A-Za-z0-9!_.*'()=-]+)*/?)?$";

const SETTINGS = {
  provider: PROVIDER,
  auth_mode: AUTH_MODE,
  bucket_name: z.string().meta({
    description: 'The name that its provider uses.',
    minLength: 3,
    maxLength: 63,
    pattern: '^(?!.*\\.\\.)(?![0-9]+\\.[0-9]+\\.[0-9]+\\.[0-9]+$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
  }),
  key_prefix: text(BUCKET_KEY_PREFIX_LENGTH_MAX, 'A slash is added at its end.').meta({ pattern: PREFIX_PATTERN }),
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
  pattern:
    '^[^\\s\\u0000-\\u001f\\u007f-\\u009f]([^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f])?$',
});
const IS_DEFAULT = z.boolean().meta({ description: 'Repositories whose creator names no bucket are in this one.' });

export const NEW_STORAGE_BUCKET = z.strictObject({
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

/** What belongs together: a role lets into Amazon's buckets only, and the others need an endpoint and keys. */
const COMMON = {
  name: NAME,
  bucket_name: SETTINGS.bucket_name,
  key_prefix: NEW_STORAGE_BUCKET.shape.key_prefix,
  is_default: NEW_STORAGE_BUCKET.shape.is_default,
};
const needed = ({
  lengthMax,
  description,
  pattern,
}: Readonly<Record<'description' | 'pattern', string>> & { readonly lengthMax: number }) =>
  z.string().max(lengthMax).meta({ description, minLength: 1, maxLength: lengthMax, pattern });
const KEYS = {
  auth_mode: z.literal('STATIC_KEYS'),
  region: needed({
    lengthMax: BUCKET_REGION_LENGTH_MAX,
    description: 'Where the bucket is.',
    pattern: '^[a-z0-9]+(-[a-z0-9]+)*$',
  }),
  access_key_id: needed({
    lengthMax: BUCKET_ACCESS_KEY_ID_LENGTH_MAX,
    description: 'The id of the access key.',
    pattern: '^[A-Za-z0-9._~+=@:-]+$',
  }),
  secret_access_key: needed({
    lengthMax: BUCKET_SECRET_KEY_LENGTH_MAX,
    description: 'No answer shows it.',
    pattern: '^[\\x21-\\x7e]+$',
  }),
};
const ENDPOINT = {
  lengthMax: OUTGOING_URL_LENGTH_MAX,
  description: 'HTTPS, a host and perhaps a port.',
  pattern: '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\\\\\s]+/?$',
};

const IGNORED = { description: 'Ignored.' };
const OF_KEYS = {
  region: SETTINGS.region.optional().meta(IGNORED),
  endpoint_url: SETTINGS.endpoint_url.optional().meta(IGNORED),
  access_key_id: SETTINGS.access_key_id.optional().meta(IGNORED),
  secret_access_key: SETTINGS.secret_access_key.optional().meta(IGNORED),
};
const OF_ROLES = { role_arn: SETTINGS.role_arn.optional().meta(IGNORED) };

export const OFFERED_STORAGE_BUCKET = z
  .union([
    z
      .strictObject({
        ...COMMON,
        ...OF_KEYS,
        provider: z.literal('S3'),
        auth_mode: z.literal('OIDC'),
        role_arn: needed({
          lengthMax: BUCKET_ROLE_ARN_LENGTH_MAX,
          description: 'The role that trusts this service.',
          pattern: '^arn:aws[a-z-]{0,20}:iam::[0-9]{12}:role/[A-Za-z0-9_+=,.@/-]{1,575}$',
        }),
      })
      .meta({
        id: 'NewStorageBucketWithRole',
        description: 'A bucket of Amazon S3, by a role that trusts this service.',
      }),
    z
      .strictObject({
        ...COMMON,
        ...KEYS,
        ...OF_ROLES,
        provider: z.literal('S3'),
        endpoint_url: needed({ ...ENDPOINT, description: "Null: Amazon's of the region." })
          .nullable()
          .optional(),
      })
      .meta({ id: 'NewStorageBucketWithKeys', description: 'A bucket of Amazon S3, by an access key.' }),
    z
      .strictObject({
        ...COMMON,
        ...KEYS,
        ...OF_ROLES,
        provider: z.enum(['R2', 'MINIO']),
        endpoint_url: needed(ENDPOINT),
      })
      .meta({ id: 'NewStorageBucketAtEndpoint', description: 'A bucket of another provider, by an access key.' }),
  ])
  .meta({ id: 'StorageBucketCreation' });

export const STORAGE_BUCKET_CHANGES = z
  .strictObject({ name: NAME, ...SETTINGS, is_default: IS_DEFAULT })
  .partial()
  .meta({
    not: {
      required: ['provider', 'auth_mode'],
      properties: { provider: { enum: ['R2', 'MINIO'] }, auth_mode: { const: 'OIDC' } },
    },
  });

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
