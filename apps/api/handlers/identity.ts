/**
 * The service as issuer of identity tokens: what a cloud reads before it trusts them.
 *
 * Invariants: both documents are public and small, and may be kept for `PUBLIC_KEYS_CACHE_SECONDS`, which the
 * rotation of the keys waits for.
 */
import { SIGNING_ALGORITHMS } from '../../../core/ports/signing-keys.ts';
import { conditionalAnswer, encodeJson } from '../body-cache.ts';
import { type Outcome, type PublicCall, publicRoute, type Route } from '../route.ts';
import { DISCOVERY, PUBLIC_KEYS } from '../schemas/identity.ts';

/**
 * How long anybody may keep the public keys of identity tokens. Internal: it is a header of an answer, which its
 * readers judge.
 */
export const PUBLIC_KEYS_CACHE_SECONDS = 300;

export const IDENTITY_ROUTES: readonly Route[] = [
  publicRoute({
    operationId: 'getIssuer',
    tag: 'Service',
    summary: 'The issuer of identity tokens',
    description:
      'OpenID Connect Discovery. A cloud that trusts this issuer lets the service use a role there, for one account, without a stored key.',
    method: 'GET',
    path: '/.well-known/openid-configuration',
    schemas: {},
    answers: { 200: DISCOVERY },
    problems: [304],
    handle: getDiscovery,
  }),
  publicRoute({
    operationId: 'getPublicKeys',
    tag: 'Service',
    summary: 'The public keys of identity tokens',
    description:
      'Read them again before you refuse a token with an unknown `kid`: keys are replaced from time to time.',
    method: 'GET',
    path: '/.well-known/jwks.json',
    schemas: {},
    answers: { 200: PUBLIC_KEYS },
    problems: [304, 503],
    handle: getPublicKeys,
  }),
];

/** OpenID Connect Discovery 1.0. Tokens are never given to a browser, so no endpoint gives them. */
async function getDiscovery(call: PublicCall): Promise<Outcome> {
  const { baseUrl } = call.context.addresses();
  return cacheable(call, {
    issuer: baseUrl,
    jwks_uri: `${baseUrl}/.well-known/jwks.json`,
    response_types_supported: ['id_token'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: SIGNING_ALGORITHMS,
    claims_supported: ['iss', 'sub', 'aud', 'iat', 'nbf', 'exp', 'jti'],
    scopes_supported: ['openid'],
  });
}

/** RFC 7517, section 5. */
async function getPublicKeys(call: PublicCall): Promise<Outcome> {
  return cacheable(call, { keys: await call.context.identity.publicKeys() });
}

function cacheable({ context, request }: PublicCall, json: object): Outcome {
  const body = encodeJson(json, `"${context.digest.sha256(JSON.stringify(json)).slice(0, 32)}"`);
  const headers = { ...body.headers, 'cache-control': `public, max-age=${PUBLIC_KEYS_CACHE_SECONDS}` };
  return conditionalAnswer({ ...body, headers }, request.headers['if-none-match']);
}
