/** What every command of `strata-admin` shares: in whose name it acts, and how it ends. */
import type { Cause } from '../../core/kernel/envelope.ts';
import type { AccountId, Uuid } from '../../core/kernel/ids.ts';
import type { Refusal } from '../../core/kernel/refusal.ts';
import { findAccount } from '../../core/use-cases/accounts/accounts.ts';
import { refusalText } from '../api/refusals.ts';
import type { AdminContext } from './context.ts';
import { Refused } from './answer.ts';

export function causeOf(context: AdminContext, command: string): Cause {
  return {
    actor: { kind: 'admin', id: command },
    requestId: context.ids.next<Uuid>(),
    sourceAddressRef: null,
    causationId: null,
  };
}

export function accepted<Result extends object>(result: Result | { readonly refused: Refusal }): Result {
  if ('refused' in result) throw new Refused(refusalText(result.refused));
  return result;
}

export async function existing(context: AdminContext, username: string): Promise<AccountId> {
  const id = await findAccount(context, username);
  if (id === null) throw new Refused(`There is no account ${JSON.stringify(username)}`);
  return id;
}
