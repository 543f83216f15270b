/** Turns the vault's error about an erased account into a refusal: the erasure won a race with the caller's request. */
import { refuse } from '../../kernel/decider.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { VaultError } from '../../ports/vault.ts';

/** Refuses with `account-not-found` if the account is erased while its record is being stored. */
export async function unlessErased<Stored>(storing: Promise<Stored>): Promise<Stored | { readonly refused: Refusal }> {
  try {
    return await storing;
  } catch (error) {
    if (error instanceof VaultError && error.code === 'account-erased') return refuse({ code: 'account-not-found' });
    throw error;
  }
}
