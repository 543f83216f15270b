/**
 * Checks that the public key of a new passkey can verify signatures.
 *
 * Invariants: a key that no signature will ever match is refused at its creation. Without an attestation nothing is
 * signed then, and its owner would notice at the next sign-in that they cannot enter.
 */
import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { COSEALG, cose, decodeCredentialPublicKey, isoBase64URL } from '@simplewebauthn/server/helpers';

/** Shorter RSA keys can be broken. */
export const RSA_MODULUS_BYTES_MIN = 256;

/** Throws for bytes that are no key in COSE form, and for points that are not on their curve. */
export function isUsableKey(bytes: Uint8Array<ArrayBuffer>): boolean {
  const jwk = jwkOf(bytes);
  if (jwk === null) return false;
  return createPublicKey({ key: jwk, format: 'jwk' }).type === 'public';
}

/** RFC 9053, section 7, and RFC 8230, section 4. Null for algorithms that we do not ask for. */
function jwkOf(bytes: Uint8Array<ArrayBuffer>): JsonWebKey | null {
  const key = decodeCredentialPublicKey(bytes);
  const algorithm = key.get(cose.COSEKEYS.alg);
  if (algorithm === COSEALG.ES256 && cose.isCOSEPublicKeyEC2(key)) {
    return { kty: 'EC', crv: 'P-256', x: base64url(key.get(cose.COSEKEYS.x)), y: base64url(key.get(cose.COSEKEYS.y)) };
  }
  if (algorithm === COSEALG.EdDSA && cose.isCOSEPublicKeyOKP(key)) {
    return { kty: 'OKP', crv: 'Ed25519', x: base64url(key.get(cose.COSEKEYS.x)) };
  }
  if (algorithm === COSEALG.RS256 && cose.isCOSEPublicKeyRSA(key)) {
    const modulus = key.get(cose.COSEKEYS.n);
    if (modulus === undefined || modulus.length < RSA_MODULUS_BYTES_MIN) return null;
    return { kty: 'RSA', n: base64url(modulus), e: base64url(key.get(cose.COSEKEYS.e)) };
  }
  return null;
}

function base64url(bytes: Uint8Array<ArrayBuffer> | undefined): string {
  return bytes === undefined ? '' : isoBase64URL.fromBuffer(bytes);
}
