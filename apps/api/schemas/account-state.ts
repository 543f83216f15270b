/** The state of an account, and the refs of a repository, on the wire. core/audit/account-state.ts writes both. */
import { z } from 'zod';
import { GRANTS, SCOPES } from '../../../core/kernel/grants.ts';
import { BYTES, HEXSHA, ID, TIMESTAMP } from './common.ts';

/** A vault reference. */
const REF = z.string().meta({
  description: 'A reference: SHA-256(nonce || value) of a value that the log does not hold.',
  wire: { type: 'string', pattern: '^[0-9a-f]{64}$' },
});

const NAMED_REFS = z.array(
  z.object({
    name: z.string().meta({ description: 'The full name.', examples: ['refs/heads/main'] }),
    target: HEXSHA,
    peeled: HEXSHA.nullable().meta({ description: 'The object that an annotated tag peels to.' }),
  }),
);

export const REPOSITORY_REFS = z
  .object({ default_branch: z.string(), refs: NAMED_REFS.meta({ description: 'In byte order of names.' }) })
  .meta({ id: 'RepositoryRefs' });

const SELECTION = { scope: z.enum(SCOPES), repository_ids: z.array(ID) };
const GRANT_LIST = z.array(z.enum(GRANTS));
const USED = z.object({ used: z.int().nonnegative() });

const ACCOUNT = z.object({
  id: ID,
  username: z.string(),
  status: z.enum(['open', 'closed', 'erased']),
  plan: z.string().nullable(),
  email_ref: REF,
  password_hash_ref: REF.nullable(),
  created_at: TIMESTAMP.nullable(),
  closed_at: TIMESTAMP.nullable(),
  erase_at: TIMESTAMP.nullable(),
  default_storage_bucket_id: ID.nullable(),
  mfa_tokens: z.array(
    z.object({
      id: ID,
      kind: z.enum(['totp', 'passkey']),
      name: z.string(),
      status: z.enum(['pending', 'active']),
      secret_ref: REF.nullable(),
      created_at: TIMESTAMP,
      activated_at: TIMESTAMP.nullable(),
    }),
  ),
});

const REPOSITORY = z.object({
  id: ID,
  name: z.string(),
  description: z.string().nullable(),
  default_branch: z.string(),
  storage_bucket_id: ID.nullable(),
  size_bytes: BYTES,
  created_at: TIMESTAMP,
  pushed_at: TIMESTAMP.nullable(),
  refs: NAMED_REFS,
});

const TOKEN = z.object({
  id: ID,
  name: z.string(),
  ...SELECTION,
  grants: GRANT_LIST,
  expires_at: TIMESTAMP.nullable(),
  created_at: TIMESTAMP,
  token_prefix: z.string(),
});

const WEBHOOK = z.object({
  id: ID,
  url_ref: REF,
  secret_ref: REF,
  previous_secret_ref: REF.nullable(),
  previous_secret_valid_until: TIMESTAMP.nullable(),
  events: z.array(z.string()),
  active: z.boolean(),
  ...SELECTION,
  created_at: TIMESTAMP,
  updated_at: TIMESTAMP,
});

const BUCKET = z.object({
  id: ID,
  name: z.string(),
  provider: z.string(),
  auth_mode: z.string(),
  place_ref: REF,
  access_ref: REF,
  status: z.enum(['PENDING_VERIFICATION', 'VERIFIED', 'FAILED']),
  last_validated_at: TIMESTAMP.nullable(),
  last_failure: z.object({ step: z.string(), code: z.string(), at: TIMESTAMP }).nullable(),
  created_at: TIMESTAMP,
  updated_at: TIMESTAMP,
});

const TRUST_RULE = z.object({
  id: ID,
  name: z.string(),
  issuer: z.string(),
  conditions_ref: REF,
  ...SELECTION,
  grants: GRANT_LIST,
  created_at: TIMESTAMP,
});

export const ACCOUNT_STATE = z
  .object({
    schema: z.literal(1),
    sequence: z.int().nonnegative().meta({ description: 'The number of entries that the state is made of.' }),
    account: ACCOUNT,
    repositories: z.array(REPOSITORY),
    access_tokens: z.array(TOKEN).meta({ description: 'Those that are not revoked, expired ones too.' }),
    webhooks: z.array(WEBHOOK),
    storage_buckets: z.array(BUCKET),
    oidc_trust_rules: z.array(TRUST_RULE),
    usage: z.object({ repos: USED, storage_bytes: USED, transfer_bytes: USED, ingress_bytes: USED }),
    digest: z.string().meta({
      description: 'The SHA-256, in hex, of the canonical JSON (RFC 8785) of all other members.',
      wire: { type: 'string', pattern: '^[0-9a-f]{64}$' },
    }),
  })
  .meta({ id: 'AccountState' });
