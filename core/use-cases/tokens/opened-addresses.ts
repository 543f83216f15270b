/** Opens the addresses that uses of tokens and repositories came from. */
import type { AccountId } from '../../kernel/ids.ts';
import { parseVaultRef, type VaultDisclosure, type VaultRef } from '../../kernel/vault-ref.ts';
import type { Vault } from '../../ports/vault.ts';

export type Opened<Use> = Omit<Use, 'addressRefs'> & {
  /** By their references; an erased one is left out. */
  readonly addresses: ReadonlyMap<VaultRef, VaultDisclosure>;
};

export async function withOpenedAddresses<Use extends { readonly addressRefs: readonly string[] }>(
  vault: Pick<Vault, 'discloseAll'>,
  account: AccountId,
  uses: readonly Use[],
): Promise<readonly Opened<Use>[]> {
  const refs = new Set(uses.flatMap(({ addressRefs }) => addressRefs.flatMap((ref) => parseVaultRef(ref) ?? [])));
  const records = [...refs].map((ref) => ({ field: 'source-address' as const, ref }));
  const disclosed =
    records.length === 0 ? new Map<VaultRef, VaultDisclosure>() : await vault.discloseAll(account, records);
  return uses.map(({ addressRefs, ...use }) => {
    const addresses = new Map<VaultRef, VaultDisclosure>();
    for (const text of addressRefs) {
      const ref = parseVaultRef(text);
      const disclosure = ref === null ? undefined : disclosed.get(ref);
      if (ref !== null && disclosure !== undefined) addresses.set(ref, disclosure);
    }
    return { ...use, addresses };
  });
}
