/** Access tokens on the wire. */
import { z } from 'zod';
import { GRANTS, SCOPES } from '../../../core/kernel/grants.ts';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import { TOKEN_NAME_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { ID, INSTANT, idSchema, PAGINATION, TIMESTAMP, UNFIT_SELECTION } from './common.ts';

/** Repositories that one token may list: an event that lists them is much smaller than an append may be. */
export const TOKEN_REPOSITORIES_MAX = 10_000;

const SCOPE = z.enum(SCOPES).meta({
  description: 'ALL_REPO: all current and future repositories. SELECTED_REPO: only those of `repository_ids`.',
});
const GRANT_LIST = z.array(z.enum(GRANTS));

const FIELDS = {
  id: ID,
  name: z.string(),
  scope: SCOPE,
  grants: GRANT_LIST,
  repository_ids: z.array(ID),
  expires_at: TIMESTAMP.nullable().meta({ description: 'Null: it never expires.' }),
  created_at: TIMESTAMP,
  last_used_at: TIMESTAMP.nullable().meta({ description: 'To the minute.', moves: true }),
  token_prefix: z.string().meta({ description: 'The first characters of the secret.', examples: ['strata_4fTq'] }),
};

export const ACCESS_TOKEN = z.object(FIELDS).meta({ id: 'AccessToken' });
export const CREATED_ACCESS_TOKEN = z
  .object({ ...FIELDS, token: z.string().meta({ description: 'The secret. It is shown here once and never again.' }) })
  .meta({ id: 'CreatedAccessToken' });
export const ACCESS_TOKENS = z
  .object({
    access_tokens: z.array(ACCESS_TOKEN),
    pagination: PAGINATION.optional().meta({ description: 'Only of a request for a page.' }),
  })
  .meta({ id: 'AccessTokenList' });

const EXPIRY = INSTANT.nullable().meta({
  wire: { type: ['string', 'null'], format: 'date-time', description: 'In the future; null: never.' },
});

const SETTINGS = {
  name: z.string().meta({ minLength: 1, maxLength: TOKEN_NAME_LENGTH_MAX, examples: ['laptop'] }),
  scope: SCOPE,
  grants: GRANT_LIST.meta({ minItems: 1 }),
  repository_ids: z.array(idSchema<RepositoryId>('A repository of the account.')).max(TOKEN_REPOSITORIES_MAX).meta({
    description: 'Not empty for SELECTED_REPO, empty for ALL_REPO.',
  }),
  expires_at: EXPIRY,
};

export const NEW_ACCESS_TOKEN = z.strictObject({
  ...SETTINGS,
  repository_ids: SETTINGS.repository_ids.default([]),
  expires_at: EXPIRY.default(null),
});

/** The same as the service takes it after its rules: what of the two belongs together. */
const { repository_ids: _, ...OTHERS } = NEW_ACCESS_TOKEN.shape;
export const OFFERED_ACCESS_TOKEN = z
  .union([
    z
      .strictObject({
        ...OTHERS,
        scope: z.literal('ALL_REPO'),
        repository_ids: SETTINGS.repository_ids.meta({ description: 'None.', maxItems: 0 }).optional(),
      })
      .meta({ id: 'NewAccessTokenForAll', description: 'For all current and future repositories.' }),
    z
      .strictObject({
        ...OTHERS,
        scope: z.literal('SELECTED_REPO'),
        repository_ids: SETTINGS.repository_ids.meta({ description: 'At least one.', minItems: 1 }),
      })
      .meta({ id: 'NewAccessTokenForSelected', description: 'For the repositories that it lists.' }),
  ])
  .meta({ id: 'AccessTokenCreation' });

export const ACCESS_TOKEN_CHANGES = z.strictObject(SETTINGS).partial().meta({ not: UNFIT_SELECTION });
