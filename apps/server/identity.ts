/**
 * The service as issuer of identity tokens, by which the clouds of users know for which account it asks; and the roles
 * that they let it use.
 */
import { createTokenSigning } from '../../adapters/jose/token-signing.ts';
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

/**
 * Returns the roles of users' clouds, and a function that closes their connections. The library of the token service is
 * loaded with the first role that is used.
 */
export function composeRoles(
  { stsEndpoint }: Settings,
  { context }: Foundation,
  identity: IdentityIssuer,
): Roles & { close(): void } {
  let opened: (Roles & { close(): void }) | null = null;
  const open = async (): Promise<Roles> => {
    const { createStsRoles } = await import('../../adapters/sts/roles.ts');
    opened ??= createStsRoles({ identity, endpoint: stsEndpoint, clock: context.clock });
    return opened;
  };
  return {
    credentials: async (access) => (await open()).credentials(access),
    drop: (access, refused) => opened?.drop(access, refused),
    close: () => opened?.close(),
  };
}
