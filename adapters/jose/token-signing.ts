/**
 * Keys and signatures of identity tokens by jose (core/ports/signing-keys.ts).
 *
 * Invariants: the public form of a key names each member that it copies, so that none of the private ones follows.
 */
import { calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK, type JSONWebKeySet, SignJWT } from 'jose';
import {
  type PublicKey,
  SIGNING_ALGORITHMS,
  type SigningAlgorithm,
  type SigningKey,
  type TokenSigning,
} from '../../core/ports/signing-keys.ts';

type Jwk = JSONWebKeySet['keys'][number];

/** The members that make up a public key of each algorithm (RFC 7518, section 6). */
const PUBLIC_MEMBERS = {
  RS256: ['kty', 'n', 'e'],
  ES256: ['kty', 'crv', 'x', 'y'],
} as const satisfies Readonly<Record<SigningAlgorithm, readonly (keyof Jwk)[]>>;

export function createTokenSigning(): TokenSigning {
  return {
    newKeys: () => Promise.all(SIGNING_ALGORITHMS.map(newKey)),
    publicKey,
    async sign({ id, algorithm, privateKey }, claims) {
      const key = await importJWK(parseJwk(privateKey), algorithm);
      return new SignJWT({ ...claims }).setProtectedHeader({ alg: algorithm, kid: id, typ: 'JWT' }).sign(key);
    },
  };
}

async function newKey(algorithm: SigningAlgorithm): Promise<SigningKey> {
  const { privateKey } = await generateKeyPair(algorithm, { extractable: true });
  const jwk = await exportJWK(privateKey);
  return { id: await calculateJwkThumbprint(jwk), algorithm, privateKey: JSON.stringify(jwk) };
}

function publicKey({ id, algorithm, privateKey }: SigningKey): PublicKey {
  const jwk = parseJwk(privateKey);
  const members = PUBLIC_MEMBERS[algorithm].map((name): [string, string] => [name, String(jwk[name])]);
  return { ...Object.fromEntries(members), kid: id, alg: algorithm, use: 'sig' };
}

/** Parses what `newKey` wrote. */
function parseJwk(text: string): Jwk {
  return JSON.parse(text) as Jwk;
}
