/** Makes the next set of signing keys. Commit point: `store.add`, which keeps one set of a generation. */
import type { Timestamp } from '../../kernel/ids.ts';
import type { SigningKeySet, SigningKeys, TokenSigning } from '../../ports/signing-keys.ts';

/** Returns the set, or null if another node added one of its generation first. */
export async function addSet(
  { store, signing }: { readonly store: SigningKeys; readonly signing: TokenSigning },
  sets: readonly SigningKeySet[],
  signsFrom: Timestamp,
): Promise<SigningKeySet | null> {
  const generation = (sets.at(-1)?.generation ?? 0) + 1;
  const set = { generation, signsFrom, keys: await signing.newKeys() };
  return (await store.add(set)) ? set : null;
}
