/**
 * The two ceremonies of passkeys, by @simplewebauthn/server.
 *
 * Invariants: an attestation never reaches the library. We ask for none, some browsers and password managers send one
 * all the same, and the library would fetch revocation lists from the addresses that its certificates name. The
 * library's own check of the counter is switched off, because it comes before that of the signature: the caller
 * compares counters of verified answers.
 */
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from '@simplewebauthn/server';
import { COSEALG, decodeAttestationObject, isoBase64URL, isoCBOR, isoUint8Array } from '@simplewebauthn/server/helpers';
import type { JsonObject } from '../../core/kernel/json.ts';
import { PASSKEY_CHALLENGE_SPAN_MS } from '../../core/kernel/limits.ts';
import type { Passkey, Passkeys } from '../../core/ports/passkeys.ts';
import { CREATION, SIGNATURE } from './answer.ts';
import { isUsableKey } from './public-key.ts';

/** Web Authentication, section 4, allows no longer credential id. */
export const PASSKEY_CREDENTIAL_ID_BYTES_MAX = 1_023;
/** A key in COSE form: an RSA key of 4,096 bits takes 530 bytes. */
export const PASSKEY_PUBLIC_KEY_BYTES_MAX = 1_024;

export interface RelyingParty {
  /** The host of the website, and its origin, as browsers see them. */
  readonly rpId: string;
  readonly origin: string;
  /** How authenticators call the website. */
  readonly name: string;
}

/** What asks browsers for passkeys, and verifies what they answer. */
export type Ceremonies = Omit<Passkeys, 'available' | 'parseAnswer'>;

/** The algorithms that every browser's list has. */
const ALGORITHMS = [COSEALG.EdDSA, COSEALG.ES256, COSEALG.RS256];

export function createCeremonies({ rpId, origin, name }: RelyingParty): Ceremonies {
  return {
    async creationPrompt({ account, username }, known) {
      const options = await generateRegistrationOptions({
        rpName: name,
        rpID: rpId,
        userName: username,
        userDisplayName: username,
        userID: isoUint8Array.fromUTF8String(account),
        timeout: PASSKEY_CHALLENGE_SPAN_MS,
        attestationType: 'none',
        excludeCredentials: known.map(({ credentialId }) => ({ id: credentialId })),
        authenticatorSelection: { residentKey: 'discouraged', userVerification: 'required' },
        supportedAlgorithmIDs: ALGORITHMS,
      });
      return { challenge: options.challenge, options: jsonOf(options) };
    },
    async signaturePrompt(known) {
      const options = await generateAuthenticationOptions({
        rpID: rpId,
        timeout: PASSKEY_CHALLENGE_SPAN_MS,
        allowCredentials: known.map(({ credentialId }) => ({ id: credentialId })),
        userVerification: 'required',
      });
      return { challenge: options.challenge, options: jsonOf(options) };
    },
    verifyCreation: async ({ json }, challenge) =>
      unlessRefused(async () => {
        const { response: made, ...answer } = CREATION.parse(json);
        const response = {
          ...answer,
          response: { ...made, attestationObject: withoutAttestation(made.attestationObject) },
        };
        const { verified, registrationInfo } = await verifyRegistrationResponse({
          response,
          expectedChallenge: challenge,
          expectedOrigin: origin,
          expectedRPID: rpId,
          requireUserVerification: true,
          supportedAlgorithmIDs: ALGORITHMS,
        });
        if (!verified) return null;
        const { id, publicKey, counter } = registrationInfo.credential;
        // The answer's own `id` is what browsers send; the credential's is what the authenticator made.
        if (id !== response.id || isTooLong(id, publicKey) || !isUsableKey(publicKey)) return null;
        return { passkey: { credentialId: id, publicKey: isoBase64URL.fromBuffer(publicKey) }, signCount: counter };
      }),
    verifySignature: async ({ json }, challenge, passkey) =>
      unlessRefused(async () => {
        const { verified, authenticationInfo } = await verifyAuthenticationResponse({
          response: SIGNATURE.parse(json),
          expectedChallenge: challenge,
          expectedOrigin: origin,
          expectedRPID: rpId,
          requireUserVerification: true,
          credential: credentialOf(passkey),
        });
        return verified ? { signCount: authenticationInfo.newCounter } : null;
      }),
  };
}

/** The counter 0 passes the library's check. */
function credentialOf({ credentialId, publicKey }: Passkey) {
  return { id: credentialId, publicKey: isoBase64URL.toBuffer(publicKey), counter: 0 };
}

/**
 * Returns the object with the statement `none`, as browsers make it for who asks for no attestation (Web
 * Authentication, section 5.1.3, step 24). Throws for bytes that are no attestation object.
 */
function withoutAttestation(attestationObject: string): string {
  const authData = decodeAttestationObject(isoBase64URL.toBuffer(attestationObject)).get('authData');
  const none = new Map<string, string | Uint8Array | Map<never, never>>([
    ['fmt', 'none'],
    ['attStmt', new Map<never, never>()],
    ['authData', authData],
  ]);
  return isoBase64URL.fromBuffer(isoCBOR.encode(none));
}

function isTooLong(credentialId: string, publicKey: Uint8Array): boolean {
  const idBytes = isoBase64URL.toBuffer(credentialId).length;
  return idBytes > PASSKEY_CREDENTIAL_ID_BYTES_MAX || publicKey.length > PASSKEY_PUBLIC_KEY_BYTES_MAX;
}

/**
 * Resolves to null if the library throws: it reads what a stranger sent, and reports all that is wrong with it by
 * errors without a class. It reaches nothing outside the process that could fail.
 */
async function unlessRefused<Result>(verify: () => Promise<Result | null>): Promise<Result | null> {
  try {
    return await verify();
  } catch {
    return null;
  }
}

/** The options hold JSON values only, beside members that are not there: those the form of JSON leaves out. */
function jsonOf(options: object): JsonObject {
  return JSON.parse(JSON.stringify(options)) as JsonObject;
}
