/**
 * Lists, renames and removes MFA tokens of any kind.
 *
 * Invariants: a token's vault record is removed after the event that removes the token. An interrupted removal is
 * finished by the sweep of the vault (docs/architecture.md, invariant 5). The caller has asked its owner for the
 * password again before it deletes a token.
 */
import { accounts } from '../../account/evolve.ts';
import { decideMfa, decideMfaReset } from '../../account/mfa/decide.ts';
import { type MfaToken, vaultRefOf } from '../../account/mfa/state.ts';
import { type Account, sessionEpochOf } from '../../account/state.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, MfaTokenId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, type Executed, execute, type Guarding } from '../../runtime/execute.ts';

/** Whose tokens a call is about, and who makes it. */
export interface MfaOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  readonly guarding?: Guarding;
}

export interface ActivatedToken {
  readonly activated: MfaTokenId;
  /** The session epoch that the account has now: the session that activated the token may go on in it. */
  readonly epoch: number;
}

type Refused = { readonly refused: Refusal };
type RemovalContext = Context & { readonly vault: Pick<Vault, 'delete'>; readonly failpoint: Failpoint };

/** Lists the account's tokens, oldest first, those that are pending included. */
export async function listMfaTokens(
  { entities }: Pick<Context, 'entities'>,
  account: AccountId,
): Promise<readonly MfaToken[]> {
  return tokensOf((await entities.get(accounts, account)).state);
}

export async function renameMfaToken(
  context: Context,
  origin: MfaOrigin,
  id: MfaTokenId,
  name: string,
): Promise<{ readonly renamed: MfaTokenId } | Refused> {
  const renamed = await execute(context, accounts, origin.account, origin, (account) =>
    decideMfa(account, { type: 'RenameMfaToken', id, name }),
  );
  return 'refused' in renamed ? renamed : { renamed: id };
}

/** Deletes a token and ends the account's sessions; the caller's own may go on in the epoch that is returned. */
export async function deleteMfaToken(
  context: RemovalContext,
  origin: MfaOrigin,
  id: MfaTokenId,
): Promise<{ readonly deleted: MfaTokenId; readonly epoch: number } | Refused> {
  let removed: readonly VaultRef[] = [];
  const deleted = await execute(context, accounts, origin.account, origin, (account) => {
    // The last call of this function is the one that commits.
    removed = recordsOf(tokensOf(account).filter((token) => token.id === id));
    return decideMfa(account, { type: 'DeleteMfaToken', id });
  });
  if ('refused' in deleted) return deleted;
  await removeRecords(context, origin.account, removed);
  return { deleted: id, epoch: epochAfter(deleted) };
}

/** Removes all tokens of an account whose owner lost them, and ends its sessions. For operators. */
export async function resetMfa(
  context: RemovalContext,
  origin: MfaOrigin,
): Promise<{ readonly removed: readonly MfaToken[] } | Refused> {
  let removed: readonly MfaToken[] = [];
  const reset = await execute(context, accounts, origin.account, origin, (account) => {
    removed = tokensOf(account);
    return decideMfaReset(account);
  });
  if ('refused' in reset) return reset;
  await removeRecords(context, origin.account, recordsOf(removed));
  return { removed };
}

/** Returns the session epoch that the account has after a change of its tokens. */
export function epochAfter({ entity: { state } }: Executed<Account>): number {
  if (state.status !== 'open' && state.status !== 'closed') throw new TypeError(`The account is ${state.status}`);
  return sessionEpochOf(state);
}

function tokensOf(account: Account): readonly MfaToken[] {
  return account.status === 'open' || account.status === 'closed' ? [...account.mfaTokens.values()] : [];
}

function recordsOf(tokens: readonly MfaToken[]): readonly VaultRef[] {
  return tokens.map(vaultRefOf).filter((ref) => ref !== null);
}

async function removeRecords(
  { vault, failpoint }: RemovalContext,
  account: AccountId,
  refs: readonly VaultRef[],
): Promise<void> {
  await failpoint('mfa-tokens-removed');
  await Promise.all(refs.map((ref) => vault.delete(account, ref)));
}
