/**
 * Changes the email address of an account, across the streams of the account and of both addresses.
 *
 * Invariants: the new address is claimed before `EmailChanged`, the commit point, and the old one is released after it.
 * The event is guarded by the claim's stream, and the release by the account's, so an account always holds the claim of
 * its address. The record of the old address leaves the vault before its claim is released: if this account takes the
 * address again, the vault then gives it a new reference. An interrupted change is finished by the next change, by the
 * sweep of the vault, which reads every event, or by the account's erasure.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { emailRefusal } from '../../account/names.ts';
import { emailClaims } from '../../claim/evolve.ts';
import { accept, refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { StreamGuard } from '../../ports/event-store.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { type AddressContext, claimName, claimsOfEmail, emailClaimOf, settleClaim } from './claims.ts';

export type EmailContext = Context & AddressContext & { readonly vault: Vault; readonly failpoint: Failpoint };

export interface EmailChangeOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  readonly guarding: Guarding;
}

type Refused = { readonly refused: Refusal };

/** The event to append, and what must hold at its append; null for the address that the account has. */
interface Preparation {
  readonly change: { readonly emailRef: VaultRef; readonly previousClaim: string | null } | null;
  readonly guards: readonly StreamGuard[];
}

export async function changeEmail(
  context: EmailContext,
  origin: EmailChangeOrigin,
  email: string,
): Promise<{ readonly changed: true } | Refused> {
  const { account, cause } = origin;
  const invalid = emailRefusal(email, context.spellDomain);
  if (invalid !== null) return refuse(invalid);
  let prepared: Preparation | null = null;
  // Runs before each try, so that a try that lost a race prepares again for the account as it now stands.
  const guarding: Guarding = async () => {
    const allowed = await origin.guarding();
    if ('refused' in allowed) return allowed;
    const next = await prepare(context, cause, account, email);
    if ('refused' in next) return next;
    prepared = next;
    return { guards: [...allowed.guards, ...next.guards] };
  };
  const changed = await execute(context, accounts, account, { account, cause, guarding }, (state) => {
    const change = prepared?.change ?? null;
    return change === null ? accept() : decideAccount(state, { type: 'ChangeEmail', ...change });
  });
  if ('refused' in changed) return changed;
  await context.failpoint('email-changed');
  await finishEmailChange(context, cause, account);
  return { changed: true };
}

async function prepare(
  context: EmailContext,
  cause: Cause,
  account: AccountId,
  email: string,
): Promise<Preparation | Refused> {
  await finishEmailChange(context, cause, account);
  const { state } = await context.entities.reload(accounts, account);
  if (state.status !== 'open') return refuse({ code: 'account-not-found' });
  if ((await context.vault.get(account, 'email', state.emailRef)) === email) return { change: null, guards: [] };
  const previousClaim = await emailClaimOf(context, account, state);
  const [name, ...otherSpellings] = await claimsOfEmail(context, email);
  if (previousClaim !== null && [name, ...otherSpellings].includes(previousClaim)) {
    // Only the case of its letters changes, or the spelling of its domain.
    return { change: { emailRef: await context.vault.put(account, 'email', email), previousClaim: null }, guards: [] };
  }
  const claim = await claimName(context, cause, emailClaims, name, account, otherSpellings);
  if (claim === null) return refuse({ code: 'email-taken' });
  await context.failpoint('email-claimed');
  const emailRef = await context.vault.put(account, 'email', email);
  const { stream, revision } = claim;
  return { change: { emailRef, previousClaim }, guards: [{ stream, revision }] };
}

/** Does all steps that follow the last change of the account's address. Idempotent; any node may call it. */
export async function finishEmailChange(context: EmailContext, cause: Cause, account: AccountId): Promise<void> {
  const { state } = await context.entities.reload(accounts, account);
  if ((state.status !== 'open' && state.status !== 'closed') || state.formerEmail === null) return;
  const { ref, claim } = state.formerEmail;
  const current = await emailClaimOf(context, account, state);
  if (current !== null) await settleClaim(context, cause, emailClaims, current, account, 'Confirm');
  await context.failpoint('email-claim-confirmed');
  await context.vault.delete(account, ref);
  await context.failpoint('email-record-removed');
  if (claim === null) return;
  await settleClaim(context, cause, emailClaims, claim, account, 'Release', async () => {
    const now = await context.entities.reload(accounts, account);
    const former = 'formerEmail' in now.state ? now.state.formerEmail : null;
    // The account may have changed its address again, perhaps back to this one.
    if (former?.claim !== claim) return refuse({ code: 'email-taken' });
    return { guards: [{ stream: now.stream, revision: now.revision }] };
  });
}
