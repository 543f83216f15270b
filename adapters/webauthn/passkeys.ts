/**
 * Passkeys by @simplewebauthn/server.
 *
 * Invariants: the library, with some 300 modules, is loaded by the first ceremony, since loading it is an eighth of a
 * server's start. If it cannot be loaded, the ceremony rejects, and the next one tries again.
 */
import { isIP } from 'node:net';
import type { Passkeys } from '../../core/ports/passkeys.ts';
import { parseAnswer } from './answer.ts';
import type { Ceremonies } from './ceremonies.ts';

export interface PasskeysOptions {
  /** The address of the website, as browsers see it. */
  readonly webUrl: string;
  /** How authenticators call the website. */
  readonly name: string;
}

export function createWebauthnPasskeys({ webUrl, name }: PasskeysOptions): Passkeys {
  const url = new URL(webUrl);
  const ceremonies = async (): Promise<Ceremonies> => {
    const { createCeremonies } = await import('./ceremonies.ts');
    return createCeremonies({ rpId: url.hostname, origin: url.origin, name });
  };
  return {
    available: isUsable(url),
    creationPrompt: async (account, known) => (await ceremonies()).creationPrompt(account, known),
    signaturePrompt: async (known) => (await ceremonies()).signaturePrompt(known),
    parseAnswer,
    verifyCreation: async (answer, challenge) => (await ceremonies()).verifyCreation(answer, challenge),
    verifySignature: async (answer, challenge, passkey) =>
      (await ceremonies()).verifySignature(answer, challenge, passkey),
  };
}

/** Browsers offer passkeys on secure origins whose host is a domain name (Web Authentication, section 5.1.3). */
function isUsable({ protocol, hostname }: URL): boolean {
  if (hostname === 'localhost' || hostname.endsWith('.localhost')) return true;
  return protocol === 'https:' && isIP(hostname.replace(/^\[(.*)\]$/, '$1')) === 0;
}
