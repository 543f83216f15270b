/**
 * Creating accounts, across the three streams that hold a username, an e-mail address and the account.
 *
 * Must stay true: names are claimed before the account exists and confirmed after, so a crash at any step
 * leaves either an account with its names, or claims that run out; a claim is taken over only once its account
 * can no longer come into being (`Abandoned` stands first in its stream).
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { emailKey, emailRefusal, isUsernameForm, usernameRefusal } from '../../account/names.ts';
import type { Plan } from '../../account/plans.ts';
import type { Account } from '../../account/state.ts';
import { decideClaim } from '../../claim/decide.ts';
import type { ClaimEvent } from '../../claim/events.ts';
import { emailClaims, usernameClaims } from '../../claim/evolve.ts';
import { hasRunOut } from '../../claim/state.ts';
import { accept, refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import { CLAIM_SPAN_MS, PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import type { Reach } from '../../ports/failpoints.ts';
import type { PasswordHasher } from '../../ports/password-hasher.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute } from '../../runtime/execute.ts';

export interface NewAccount {
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly plan: Plan;
}

type AccountContext = Context & { readonly vault: Vault; readonly passwords: PasswordHasher };
type CreationContext = AccountContext & { readonly reach: Reach };
type Refused = { readonly refused: Refusal };

export async function createAccount(
  context: CreationContext,
  cause: Cause,
  wanted: NewAccount,
): Promise<{ readonly id: AccountId } | Refused> {
  const invalid = usernameRefusal(wanted.username) ?? emailRefusal(wanted.email) ?? passwordRefusal(wanted.password);
  if (invalid !== null) return refuse(invalid);
  const id = context.ids.next<AccountId>();
  const usernameTaken = refuse({ code: 'username-taken', username: wanted.username });
  if (!(await claim(context, cause, usernameClaims, wanted.username, id))) return usernameTaken;
  await context.reach('account-username-claimed');
  const emailClaim = await context.vault.fingerprint('email', emailKey(wanted.email));
  if (!(await claim(context, cause, emailClaims, emailClaim, id))) {
    await settleClaim(context, cause, usernameClaims, wanted.username, id, 'Release');
    return refuse({ code: 'email-taken' });
  }
  // The vault is written before the event that names its records (invariant 5).
  const emailRef = await context.vault.put(id, 'email', wanted.email);
  const passwordHashRef = await context.vault.put(id, 'password-hash', await context.passwords.hash(wanted.password));
  const created = await execute(context, accounts, id, { account: id, cause }, (state) =>
    decideAccount(state, {
      type: 'CreateAccount',
      username: wanted.username,
      emailRef,
      passwordHashRef,
      plan: wanted.plan,
    }),
  );
  if ('refused' in created) {
    // The claims took longer than their time and the account was abandoned: nothing of it may stay claimed.
    await settleClaim(context, cause, usernameClaims, wanted.username, id, 'Release');
    await settleClaim(context, cause, emailClaims, emailClaim, id, 'Release');
    return created;
  }
  await context.reach('account-created');
  await settleClaim(context, cause, usernameClaims, wanted.username, id, 'Confirm');
  await settleClaim(context, cause, emailClaims, emailClaim, id, 'Confirm');
  return { id };
}

type ClaimDecider = typeof usernameClaims;

/** Whether the name is now claimed for the account. */
async function claim(
  context: Context,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  account: AccountId,
): Promise<boolean> {
  const now = context.clock.now();
  const until = plusMs(now, CLAIM_SPAN_MS);
  const abandoned = await abandonFormer(context, cause, decider, name, now);
  const claimed = await execute(context, decider, name, { account, cause }, (current) => {
    const decision = decideClaim(current, { type: 'Claim', account, now, until, abandoned });
    return 'taken' in decision ? refuse({ code: 'username-taken', username: name }) : decision;
  });
  return !('refused' in claimed);
}

/** The account whose claim has run out, once it can no longer come into being; null when there is none such. */
async function abandonFormer(
  context: Context,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  now: Timestamp,
): Promise<AccountId | null> {
  const { state } = await context.entities.reload(decider, name);
  if (state.status !== 'pending' || !hasRunOut(state, now)) return null;
  const former = state.account;
  const abandoned = await execute(context, accounts, former, { account: former, cause }, (account) =>
    decideAccount(account, { type: 'AbandonAccount' }),
  );
  if ('refused' in abandoned) throw new TypeError('Abandoning is never refused');
  const { status } = abandoned.entity.state;
  if (status !== 'open' && status !== 'erased') return former;
  // It did come into being, and only its confirmation was cut off: finish that. An erasure settles its claims itself.
  await settleClaim(context, cause, decider, name, former, 'Confirm');
  return null;
}

/** Brings a claim of the account to its end. Settled already, or somebody else's by now, is settled. */
export async function settleClaim(
  context: Context,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  account: AccountId,
  type: 'Confirm' | 'Release',
): Promise<void> {
  await execute(context, decider, name, { account, cause }, (state) => {
    const decision = decideClaim(state, { type, account });
    // Somebody else took the name over: there is nothing of this account's left to settle.
    return 'taken' in decision ? accept<ClaimEvent>() : decision;
  });
}

function passwordRefusal(password: string): Refusal | null {
  const length = codePointCount(password);
  return length < PASSWORD_LENGTH_MIN || length > PASSWORD_LENGTH_MAX ? { code: 'password-length' } : null;
}

export async function changePlan(
  context: Context,
  cause: Cause,
  account: AccountId,
  plan: Plan,
): Promise<{ readonly plan: Plan } | Refused> {
  const changed = await execute(context, accounts, account, { account, cause }, (state) =>
    decideAccount(state, { type: 'ChangePlan', plan }),
  );
  return 'refused' in changed ? changed : { plan };
}

export async function changePassword(
  context: AccountContext,
  cause: Cause,
  account: AccountId,
  password: string,
): Promise<{ readonly changed: true } | Refused> {
  const invalid = passwordRefusal(password);
  if (invalid !== null) return refuse(invalid);
  const before = await context.entities.reload(accounts, account);
  if (before.state.status !== 'open') return refuse({ code: 'account-not-found' });
  const passwordHashRef = await context.vault.put(account, 'password-hash', await context.passwords.hash(password));
  let superseded = before.state.passwordHashRef;
  const changed = await execute(context, accounts, account, { account, cause }, (state) => {
    // Of the last decision, the one that commits: another change may have come first.
    if (state.status === 'open') superseded = state.passwordHashRef;
    return decideAccount(state, { type: 'ChangePassword', passwordHashRef });
  });
  if ('refused' in changed) return changed;
  await context.vault.delete(account, superseded);
  return { changed: true };
}

/** The account that a username is of; an erased one has none, though nobody else can take it. */
export async function findAccount(context: Context, username: string): Promise<AccountId | null> {
  const found = await findAccountState(context, username);
  return found?.state.status === 'open' ? found.id : null;
}

/** The account that a username is claimed for, also before it exists and after it was erased. */
export async function findAccountState(
  context: Context,
  username: string,
): Promise<{ readonly id: AccountId; readonly state: Account } | null> {
  if (!isUsernameForm(username)) return null;
  const { state: claim } = await context.entities.get(usernameClaims, username);
  if (claim.status === 'free') return null;
  // A claim alone says nothing of the account: its own stream decides.
  const { state } = await context.entities.get(accounts, claim.account);
  return { id: claim.account, state };
}
