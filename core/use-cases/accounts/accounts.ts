/**
 * Creates accounts across three streams: those of the username, of the e-mail address and of the account.
 *
 * Must stay true: names are claimed before the account is created and confirmed after. So a crash at any step leaves
 * either an account that holds its names, or claims that lapse. A claim is taken over only if nobody can create its
 * account any more, because `Abandoned` is the first event of that account's stream.
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
import type { Failpoint } from '../../ports/failpoints.ts';
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
type CreationContext = AccountContext & { readonly failpoint: Failpoint };
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
  await context.failpoint('account-username-claimed');
  const emailClaim = await context.vault.fingerprint('email', emailKey(wanted.email));
  if (!(await claim(context, cause, emailClaims, emailClaim, id))) {
    await settleClaim(context, cause, usernameClaims, wanted.username, id, 'Release');
    return refuse({ code: 'email-taken' });
  }
  // The vault records are written before the event that names them (docs/architecture.md, invariant 5).
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
    // The claims lapsed and another request abandoned this account. Its names must not remain claimed.
    await settleClaim(context, cause, usernameClaims, wanted.username, id, 'Release');
    await settleClaim(context, cause, emailClaims, emailClaim, id, 'Release');
    return created;
  }
  await context.failpoint('account-created');
  await settleClaim(context, cause, usernameClaims, wanted.username, id, 'Confirm');
  await settleClaim(context, cause, emailClaims, emailClaim, id, 'Confirm');
  return { id };
}

type ClaimDecider = typeof usernameClaims;

/** Claims a name. Resolves true if the name is now claimed for the account. */
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

/** Abandons the account whose claim on the name has lapsed, and returns its id. Null if there is none to abandon. */
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
  if (abandoned.entity.state.status === 'abandoned') return former;
  // The account was created, but its claim was never confirmed: confirm it now. An erasure settles its own claims.
  await settleClaim(context, cause, decider, name, former, 'Confirm');
  return null;
}

/**
 * Confirms or releases the account's claim on a name. Idempotent; does nothing if the name is another account's now.
 */
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
    // Another account took the name over: this account has no claim left to settle.
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
    // The last call of this function commits. Another change may have replaced the hash that was read before.
    if (state.status === 'open') superseded = state.passwordHashRef;
    return decideAccount(state, { type: 'ChangePassword', passwordHashRef });
  });
  if ('refused' in changed) return changed;
  await context.vault.delete(account, superseded);
  return { changed: true };
}

/** Finds the open account with this username. Null also for an erased account, whose name nobody else can claim. */
export async function findAccount(context: Context, username: string): Promise<AccountId | null> {
  const found = await findAccountState(context, username);
  return found?.state.status === 'open' ? found.id : null;
}

/** Finds the account that holds the claim of a username, whether it is not created yet, open, closed or erased. */
export async function findAccountState(
  context: Context,
  username: string,
): Promise<{ readonly id: AccountId; readonly state: Account } | null> {
  if (!isUsernameForm(username)) return null;
  const { state: claim } = await context.entities.get(usernameClaims, username);
  if (claim.status === 'free') return null;
  // A claim does not show whether the account exists. The account's own stream does.
  const { state } = await context.entities.get(accounts, claim.account);
  return { id: claim.account, state };
}
