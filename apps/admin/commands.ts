/** Shared by the commands of `strata-admin`: the cause of their events, and the check of their results. */
import type { Cause } from '../../core/kernel/envelope.ts';
import type { AccountId, Uuid } from '../../core/kernel/ids.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import { findAccount } from '../../core/use-cases/accounts/accounts.ts';
import { refusalText } from '../front-door/texts/refusals.ts';
import { sourceAddressRef } from '../server/source-address.ts';
import { Refused } from './answer.ts';
import type { AdminContext } from './context.ts';

/**
 * Returns the cause of what a command does to an account: `strata-admin` with the command, and a vault record of the
 * account that says who typed it, on which host. An erasure of the account ends that record.
 */
export async function causeOf(
  context: Pick<AdminContext, 'ids' | 'vault' | 'operator'>,
  command: string,
  account: AccountId,
): Promise<Cause> {
  const ref = await sourceAddressRef(context.vault, account, context.operator);
  return { ...causeWithoutAccount(context, command), sourceAddressRef: ref };
}

/** The same for an account that does not exist yet, whose creation stores `operator` itself. */
export function causeWithoutAccount(context: Pick<AdminContext, 'ids'>, command: string): Cause {
  return {
    actor: { kind: 'admin', id: command },
    requestId: context.ids.next<Uuid>(),
    sourceAddressRef: null,
    causationId: null,
  };
}

/** Returns the result of a use case; throws `Refused` with the refusal's message. */
export function requireAccepted<Result extends object>(result: Result | { readonly refused: Refusal }): Result {
  if ('refused' in result) throw new Refused(refusalText(result.refused));
  return result;
}

/** Resolves to the account's id; throws `Refused` if no account has the username. */
export async function requireAccount(context: AdminContext, username: string): Promise<AccountId> {
  const id = await findAccount(context, username);
  if (id === null) throw new Refused(`There is no account ${JSON.stringify(username)}`);
  return id;
}
