/**
 * The service as issuer of identity tokens, by which the clouds of users know for which account it asks; and the roles
 * that they let it use.
 */
import { createTokenSigning } from '../../adapters/jose/token-signing.ts';
import { createStsRoles } from '../../adapters/sts/roles.ts';
import type { Roles } from '../../core/ports/buckets.ts';
import type { IdentityIssuer } from '../../core/ports/identity-issuer.ts';
import { createIdentityIssuer } from '../../core/use-cases/issuing/identity-issuer.ts';
import { createKeyRing } from '../../core/use-cases/issuing/signing-key-ring.ts';
import type { Foundation } from './foundation.ts';
import type { Settings } from './settings.ts';

export function composeIdentity(
  { baseUrl }: Settings,
  { context }: Foundation,
  onFault: (what: string, cause: unknown) => void,
): IdentityIssuer {
  const { clock, ids, signingKeys } = context;
  const signing = createTokenSigning();
  const keys = createKeyRing({ store: signingKeys, signing, clock, onFault });
  return createIdentityIssuer({ issuer: () => baseUrl, keys, signing, clock, ids });
}

/** Returns the roles of users' clouds, and a function that closes their connections. */
export function composeRoles(
  { stsEndpoint }: Settings,
  { context }: Foundation,
  identity: IdentityIssuer,
): Roles & { close(): void } {
  return createStsRoles({ identity, endpoint: stsEndpoint, clock: context.clock });
}
