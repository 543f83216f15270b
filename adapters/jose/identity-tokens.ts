/**
 * Identity tokens by jose (core/ports/identity-tokens.ts).
 *
 * Invariants: size and depth are bounded before anything is parsed, and an algorithm that is not in the list never
 * reaches a key. The library takes keys only from the list that is passed to it: it ignores `jwk`, `jku`, `x5c` and
 * `x5u`.
 */
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, errors, jwtVerify } from 'jose';
import type { JsonObject } from '../../core/kernel/json.ts';
import {
  IDENTITY_TOKEN_ID_LENGTH_MAX,
  IDENTITY_TOKEN_LENGTH_MAX,
  IDENTITY_TOKEN_SKEW_MS,
} from '../../core/kernel/limits.ts';
import type { IdentityTokens, UnverifiedToken, VerificationFault } from '../../core/ports/identity-tokens.ts';
import { inexactMembers } from './exact-numbers.ts';
import { createIssuerKeys, type IssuerKeysOptions } from './issuer-keys.ts';

/** How deep the claims of an identity token nest. */
export const IDENTITY_TOKEN_DEPTH_MAX = 10;

/** Signatures with a public key. Of elliptic curves those that every JWT library has. */
const ALGORITHMS: readonly string[] = 'RS256 RS384 RS512 PS256 PS384 PS512 ES256 ES384 ES512 EdDSA Ed25519'.split(' ');
const COMPACT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

export function createJoseIdentityTokens(options: IssuerKeysOptions): IdentityTokens {
  const issuerKeys = createIssuerKeys(options);
  return {
    read(token) {
      const header = headerOf(token);
      if (header === null) return null;
      const claims = claimsOf(token);
      return claims === null ? null : { ...claims, isAlgorithmAllowed: isAllowed(header.alg) };
    },
    async verify(token, { account, issuer, audience, now }) {
      const header = headerOf(token);
      if (header === null || !isAllowed(header.alg)) return { fault: 'signature-invalid', found: null };
      const keys = await issuerKeys.keysOf(account, issuer, header.kid);
      if ('fault' in keys) return keys;
      try {
        await jwtVerify(token, createLocalJWKSet(keys.set), {
          algorithms: [...ALGORITHMS],
          issuer,
          audience,
          clockTolerance: IDENTITY_TOKEN_SKEW_MS / 1_000,
          currentDate: new Date(now),
          requiredClaims: ['exp', 'iat', 'sub'],
        });
        return null;
      } catch (error) {
        return faultOf(error);
      }
    },
  };
}

interface Header {
  readonly alg: string;
  readonly kid: string | undefined;
}

function headerOf(token: string): Header | null {
  if (token.length > IDENTITY_TOKEN_LENGTH_MAX || !COMPACT.test(token)) return null;
  if (!token.split('.').slice(0, 2).every(isShallow)) return null;
  const header = ifReadable(() => decodeProtectedHeader(token));
  // No issuer marks a header as critical, and what is marked so must be understood (RFC 7515, section 4.1.11).
  if (header === null || header.crit !== undefined || typeof header.alg !== 'string') return null;
  const kid: unknown = header.kid;
  if (kid === undefined) return { alg: header.alg, kid };
  return typeof kid === 'string' && kid.length <= IDENTITY_TOKEN_ID_LENGTH_MAX ? { alg: header.alg, kid } : null;
}

function claimsOf(token: string): Pick<UnverifiedToken, 'claims' | 'inexact'> | null {
  // The cast is sound because the library has parsed the claims from JSON into an object.
  const claims = ifReadable<JsonObject>(() => decodeJwt(token) as JsonObject);
  if (claims === null) return null;
  const [, payload = ''] = token.split('.');
  // The library decodes it in the same way: without a byte order mark.
  return { claims, inexact: inexactMembers(new TextDecoder().decode(Buffer.from(payload, 'base64url'))) };
}

function isAllowed(algorithm: string): boolean {
  return ALGORITHMS.includes(algorithm);
}

/**
 * Returns true if the JSON in a part of a token does not nest too deep. Braces in texts count too: no token has many.
 */
function isShallow(part: string): boolean {
  let depth = 0;
  for (const character of Buffer.from(part, 'base64url').toString('latin1')) {
    if (character === '{' || character === '[') depth += 1;
    else if (character === '}' || character === ']') depth -= 1;
    if (depth > IDENTITY_TOKEN_DEPTH_MAX) return false;
  }
  return true;
}

function ifReadable<Read>(read: () => Read): Read | null {
  try {
    return read();
  } catch (error) {
    // The library throws both, depending on what it cannot decode.
    if (error instanceof errors.JOSEError || error instanceof TypeError) return null;
    throw error;
  }
}

function faultOf(error: unknown): VerificationFault {
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys) {
    return { fault: 'key-unknown', found: null };
  }
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired) {
    return { fault: 'claims-malformed', found: null };
  }
  if (error instanceof errors.JOSEError || error instanceof TypeError || error instanceof DOMException) {
    // A key that the platform cannot use is as good as none: TypeError and DOMException come from importing it.
    return { fault: 'signature-invalid', found: null };
  }
  throw error;
}
