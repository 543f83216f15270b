/** Trust rules, exchanges of identity tokens, and what was refused, on the wire. */
import { z } from 'zod';
import { GRANTS, SCOPES } from '../../../core/kernel/grants.ts';
import type { RepositoryId } from '../../../core/kernel/ids.ts';
import {
  IDENTITY_TOKEN_LENGTH_MAX,
  OUTGOING_URL_LENGTH_MAX,
  TOKEN_NAME_LENGTH_MAX,
  TRUST_RULE_CLAIM_NAME_LENGTH_MAX,
  TRUST_RULE_CLAIMS_MAX,
  TRUST_RULE_PATTERN_LENGTH_MAX,
  TRUST_RULE_WILDCARDS_MAX,
} from '../../../core/kernel/limits.ts';
import { ID, idSchema, TIMESTAMP, UNFIT_SELECTION } from './common.ts';

/** Repositories that one rule may list. */
export const TRUST_RULE_REPOSITORIES_MAX = 100;

const SCOPE = z.enum(SCOPES);
const GRANT_LIST = z.array(z.enum(GRANTS));
const PATTERN_BOUNDS = {
  pattern: `^[^\\u0000-\\u001f\\u007f-\\u009f*]*([*][^\\u0000-\\u001f\\u007f-\\u009f*]*){0,${TRUST_RULE_WILDCARDS_MAX}}$`,
  minLength: 1,
  maxLength: TRUST_RULE_PATTERN_LENGTH_MAX,
};
/** A record leaves this member out without a word, so that a rule would ask less of a token than its owner meant. */
const UNREADABLE_CLAIM = '__proto__';
const CLAIM_PATTERNS = z
  .unknown()
  .superRefine((claims, issues) => {
    if (typeof claims !== 'object' || claims === null || !Object.hasOwn(claims, UNREADABLE_CLAIM)) return;
    issues.addIssue({ code: 'custom', path: [UNREADABLE_CLAIM], message: 'No claim can have this name' });
  })
  .pipe(z.record(z.string(), z.string()));
const CLAIMS_FORM = {
  type: 'object',
  additionalProperties: { type: 'string', ...PATTERN_BOUNDS },
  maxProperties: TRUST_RULE_CLAIMS_MAX,
  propertyNames: {
    pattern: '^(?!(iss|aud|sub|exp|nbf|iat|jti|__proto__)$)[^\\u0000-\\u001f\\u007f-\\u009f]+$',
    maxLength: TRUST_RULE_CLAIM_NAME_LENGTH_MAX,
  },
  description: 'A pattern for each claim that the identity token must have.',
  examples: [{ repository_id: '456789', repository_owner_id: '123456' }],
};
const CLAIMS = CLAIM_PATTERNS.meta({ wire: CLAIMS_FORM });

export const TRUST_RULE = z
  .object({
    id: ID,
    name: z.string(),
    issuer: z.string(),
    audience: z
      .string()
      .meta({ description: 'The audience that an identity token must have: the same for all rules.' }),
    subject: z.string(),
    claims: CLAIMS,
    grants: GRANT_LIST,
    scope: SCOPE,
    repository_ids: z.array(ID),
    created_at: TIMESTAMP,
    last_used_at: TIMESTAMP.nullable().meta({
      description: 'The last use of the rule, or of a token that it gave out; to the minute.',
      moves: true,
    }),
  })
  .meta({ id: 'TrustRule' });
export const TRUST_RULES = z.object({ trust_rules: z.array(TRUST_RULE) }).meta({ id: 'TrustRuleList' });

const ISSUER_PATTERN = '^[Hh][Tt][Tt][Pp][Ss]?://[^/?#\\\\\\s][^?#\\\\\\s]*$';

const SETTINGS = {
  name: z.string().meta({ minLength: 1, maxLength: TOKEN_NAME_LENGTH_MAX, examples: ['main of acme/site'] }),
  issuer: z.string().meta({
    description: 'The `iss` of the identity token: a URL with HTTPS, of a public host that is not this service.',
    maxLength: OUTGOING_URL_LENGTH_MAX,
    pattern: ISSUER_PATTERN,
    examples: ['https://token.actions.githubusercontent.com'],
  }),
  subject: z.string().meta({
    description: 'A pattern of the `sub` of the identity token.',
    ...PATTERN_BOUNDS,
    examples: ['repo:*/*:ref:refs/heads/main'],
  }),
  claims: CLAIMS,
  scope: SCOPE,
  grants: GRANT_LIST.meta({ minItems: 1 }),
  repository_ids: z
    .array(idSchema<RepositoryId>('A repository of the account.'))
    .max(TRUST_RULE_REPOSITORIES_MAX)
    .meta({
      description: 'Not empty for SELECTED_REPO, empty for ALL_REPO.',
    }),
};

export const NEW_TRUST_RULE = z.strictObject({
  ...SETTINGS,
  // In words, since not every generator of clients can write an object as a default.
  claims: CLAIMS.default({}).meta({
    wire: { ...CLAIMS_FORM, description: `${CLAIMS_FORM.description} None if absent.` },
  }),
  repository_ids: SETTINGS.repository_ids.default([]),
});
/** The same as the service takes it after its rules: what of the two belongs together. */
const { repository_ids: _, ...OTHERS } = NEW_TRUST_RULE.shape;
export const OFFERED_TRUST_RULE = z
  .union([
    z
      .strictObject({
        ...OTHERS,
        scope: z.literal('ALL_REPO'),
        repository_ids: SETTINGS.repository_ids.meta({ description: 'None.', maxItems: 0 }).optional(),
      })
      .meta({ id: 'NewTrustRuleForAll', description: 'For all current and future repositories.' }),
    z
      .strictObject({
        ...OTHERS,
        scope: z.literal('SELECTED_REPO'),
        repository_ids: SETTINGS.repository_ids.meta({ description: 'At least one.', minItems: 1 }),
      })
      .meta({ id: 'NewTrustRuleForSelected', description: 'For the repositories that it lists.' }),
  ])
  .meta({ id: 'TrustRuleCreation' });

export const TRUST_RULE_CHANGES = z.strictObject(SETTINGS).partial().meta({ not: UNFIT_SELECTION });

export const REFUSED_EXCHANGES = z
  .object({
    refusals: z.array(
      z.object({
        reason: z.string().meta({ description: 'A stable code.', examples: ['claim-mismatch'] }),
        message: z.string(),
        claim: z.string().nullable().meta({ description: 'The claim that did not match.' }),
        found: z.string().nullable().meta({ description: 'What was there instead, cut to 200 characters.' }),
        times: z.int().positive(),
        first_at: TIMESTAMP,
        last_at: TIMESTAMP,
      }),
    ),
  })
  .meta({ id: 'RefusedExchangeList' });

export const EXCHANGE = z.strictObject({
  id_token: z.string().max(IDENTITY_TOKEN_LENGTH_MAX).meta({ description: 'A signed JSON Web Token.' }),
});
export const EXCHANGED = z
  .object({
    id: ID,
    token: z.string().meta({ description: 'The secret. It is shown here once and never again.' }),
    token_type: z.literal('Bearer'),
    expires_at: TIMESTAMP,
    grants: GRANT_LIST,
    scope: SCOPE,
    repository_ids: z.array(ID),
  })
  .meta({ id: 'ExchangedToken' });
