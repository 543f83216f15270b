/**
 * Erasing an account: gone for everybody with one append, and everything personal of it unreadable after.
 *
 * Must stay true: `AccountErased` is the commit point. What follows it is repeatable, so that whoever comes next
 * finishes what was cut in half: the same command again, or the sweep of the vault, which reads every event. The
 * username stays taken, as the pseudonym that the log knows the account by; its address comes free. The data key goes
 * after the event and after the address was read, so that nothing is unreadable of an account that is still there.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { emailKey } from '../../account/names.ts';
import type { ErasedAccount } from '../../account/state.ts';
import { emailClaims, usernameClaims } from '../../claim/evolve.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Reach } from '../../ports/failpoints.ts';
import { type Vault, VaultError } from '../../ports/vault.ts';
import { settleClaim } from './accounts.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { closeRepository } from './repositories.ts';

export interface ErasureContext extends Context {
  readonly vault: Vault;
  readonly reach: Reach;
}

export interface Erasure {
  /** How many repositories were closed; fewer than it had where somebody else finished a part. */
  readonly repositories: number;
  /** False where the vault's record of the address was changed: it cannot be read, so its claim cannot be found. */
  readonly addressReleased: boolean;
}

/** Erases the account, or finishes its erasure. */
export async function eraseAccount(
  context: ErasureContext,
  cause: Cause,
  account: AccountId,
): Promise<Erasure | { readonly refused: Refusal }> {
  const erased = await execute(context, accounts, account, { account, cause }, (state) =>
    decideAccount(state, { type: 'EraseAccount' }),
  );
  if ('refused' in erased) return erased;
  await context.reach('account-erased');
  return finishErasure(context, cause, account);
}

/** Everything that follows the event; done already, it changes nothing. TypeError for an account that is not erased. */
export async function finishErasure(context: ErasureContext, cause: Cause, account: AccountId): Promise<Erasure> {
  const { state } = await context.entities.reload(accounts, account);
  if (state.status !== 'erased') throw new TypeError(`Account ${account} is ${state.status}, not erased`);
  await settleClaim(context, cause, usernameClaims, state.username, account, 'Confirm');
  const addressReleased = await releaseAddress(context, cause, account, state);
  await context.vault.eraseAccount(account);
  let repositories = 0;
  for (const id of state.repositories.keys()) {
    const closed = await closeRepository(context, { account, cause }, id);
    if ('refused' in closed) throw new TypeError(`Closing was refused: ${closed.refused.code}`);
    repositories += 1;
  }
  return { repositories, addressReleased };
}

async function releaseAddress(
  context: ErasureContext,
  cause: Cause,
  account: AccountId,
  { emailRef }: ErasedAccount,
): Promise<boolean> {
  let email: string | null;
  try {
    email = await context.vault.get(account, 'email', emailRef);
  } catch (error) {
    // What was damaged must not keep everything else from being erased.
    if (error instanceof VaultError && error.code === 'record-tampered') return false;
    throw error;
  }
  // Null: an erasure before this one came as far as the key, and had released the address by then.
  if (email !== null) {
    const claim = await context.vault.fingerprint('email', emailKey(email));
    await settleClaim(context, cause, emailClaims, claim, account, 'Release');
  }
  return true;
}
