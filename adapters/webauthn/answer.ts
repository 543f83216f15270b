/**
 * Parses a browser's answer: JSON in the form of `PublicKeyCredential.toJSON()` (Web Authentication, section 5.1).
 *
 * Invariants: it verifies nothing. It finds the challenge and the credential that the answer names, so that the
 * caller can look both up before it verifies the signature.
 */
import { z } from 'zod';
import { KIB } from '../../core/kernel/byte-units.ts';
import type { PasskeyAnswer } from '../../core/ports/passkeys.ts';

/** The length of a browser's answer to a challenge, as JSON: credential id, key and signature take about 2,000. */
export const PASSKEY_ANSWER_LENGTH_MAX = 16 * KIB;

const base64url = z.string().regex(/^[A-Za-z0-9_-]+$/);

const ANSWER = z.object({
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  // Members beside these, such as the transports, are dropped: nothing needs them.
  response: z.object({
    clientDataJSON: base64url,
    attestationObject: base64url.optional(),
    authenticatorData: base64url.optional(),
    signature: base64url.optional(),
    userHandle: z.union([base64url, z.literal('')]).nullish(),
  }),
});

/** `crossOrigin` is true if a page of another origin embeds the website: no page may. */
const CLIENT_DATA = z.object({ challenge: base64url, crossOrigin: z.literal(false).optional() });

const CREDENTIAL = {
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  clientExtensionResults: z.object({}),
};

/** An answer that holds a new credential. */
export const CREATION = z.object({
  ...CREDENTIAL,
  response: z.object({ clientDataJSON: base64url, attestationObject: base64url }),
});

/** An answer that holds a signature. */
export const SIGNATURE = z.object({
  ...CREDENTIAL,
  response: z.object({ clientDataJSON: base64url, authenticatorData: base64url, signature: base64url }),
});

export function parseAnswer(text: string): PasskeyAnswer | null {
  if (text.length > PASSKEY_ANSWER_LENGTH_MAX) return null;
  const { data: answer } = ANSWER.safeParse(jsonIn(text));
  if (answer === undefined) return null;
  const { clientDataJSON, userHandle, ...rest } = answer.response;
  const { data: clientData } = CLIENT_DATA.safeParse(jsonIn(textIn(clientDataJSON)));
  if (clientData === undefined) return null;
  const account = userHandle ? textIn(userHandle) : null;
  const response = { clientDataJSON, ...withoutUndefined(rest) };
  const { id, rawId, type } = answer;
  const json = { id, rawId, type, response, clientExtensionResults: {} };
  return { challenge: clientData.challenge, credentialId: id, account, json };
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function textIn(base64: string): string {
  return Buffer.from(base64, 'base64url').toString('utf8');
}

function withoutUndefined(members: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(members).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}
