/** The documents by which others check the identity tokens of this service. */
import { z } from 'zod';
import { SIGNING_ALGORITHMS } from '../../../core/ports/signing-keys.ts';

export const DISCOVERY = z.object({
  issuer: z.string(),
  jwks_uri: z.string(),
  response_types_supported: z.array(z.string()),
  subject_types_supported: z.array(z.string()),
  id_token_signing_alg_values_supported: z.array(z.enum(SIGNING_ALGORITHMS)),
  claims_supported: z.array(z.string()),
  scopes_supported: z.array(z.string()),
});

export const PUBLIC_KEYS = z.object({
  keys: z.array(
    z.looseObject({ kty: z.string(), kid: z.string(), alg: z.enum(SIGNING_ALGORITHMS), use: z.literal('sig') }),
  ),
});
