/** An in-memory version of core/ports/signing-keys.ts, for tests. */
import { uuids } from '../../../adapters/node/ids.ts';
import type { Clock } from '../../../core/ports/clock.ts';
import type { IdentityIssuer } from '../../../core/ports/identity-issuer.ts';
import type { SigningKeySet, SigningKeys, TokenSigning } from '../../../core/ports/signing-keys.ts';
import { createIdentityIssuer } from '../../../core/use-cases/issuing/identity-issuer.ts';
import { createKeyRing } from '../../../core/use-cases/issuing/signing-key-ring.ts';

export function createMemorySigningKeys(): SigningKeys {
  const sets = new Map<number, SigningKeySet>();
  return {
    list: async () => [...sets.values()].toSorted((a, b) => a.generation - b.generation),
    async add(set) {
      if (sets.has(set.generation)) return false;
      sets.set(set.generation, set);
      return true;
    },
    async removeBelow(generation) {
      for (const one of sets.keys()) if (one < generation) sets.delete(one);
    },
  };
}

/** Keys without mathematics: their names count up, and a signature is the claims in JSON behind the key's name. */
export function createCountingSigning(): TokenSigning {
  let made = 0;
  return {
    async newKeys() {
      made += 1;
      const privateKey = `private ${made}`;
      return (['RS256', 'ES256'] as const).map((algorithm) => ({ id: `${algorithm}-${made}`, algorithm, privateKey }));
    },
    publicKey: ({ id, algorithm }) => ({
      kty: algorithm === 'RS256' ? 'RSA' : 'EC',
      kid: id,
      alg: algorithm,
      use: 'sig',
    }),
    sign: async ({ id }, claims) => `${id} ${JSON.stringify(claims)}`,
  };
}

/** An issuer with keys of its own in memory. */
export function createMemoryIdentity(clock: Clock, issuer: string): IdentityIssuer {
  const signing = createCountingSigning();
  const onFault = (what: string, cause: unknown): never => {
    throw new Error(`A fault of ${what}`, { cause });
  };
  const keys = createKeyRing({ store: createMemorySigningKeys(), signing, clock, onFault });
  return createIdentityIssuer({ issuer: () => issuer, keys, signing, clock, ids: uuids });
}
