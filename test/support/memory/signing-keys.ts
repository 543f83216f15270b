/** An in-memory version of core/ports/signing-keys.ts, for tests. */
import type { SigningKeySet, SigningKeys, TokenSigning } from '../../../core/ports/signing-keys.ts';

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
