/**
 * Creates accounts across three streams, those of the username, of the email address and of the account; finds them,
 * and changes their plan and password.
 *
 * Invariants: names are claimed before the account is created and confirmed after. So a crash at any step leaves
 * either an account that holds its names, or claims that lapse (claims.ts).
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { emailRefusal, isUsernameForm, usernameRefusal } from '../../account/names.ts';
import type { Plan } from '../../account/plans.ts';
import { type Account, sessionEpochOf } from '../../account/state.ts';
import { emailClaims, usernameClaims } from '../../claim/evolve.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { PASSWORD_LENGTH_MAX, PASSWORD_LENGTH_MIN } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { PasswordHasher } from '../../ports/password-hasher.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { type AddressContext, claimName, claimsOfEmail, isTaken, settleClaim } from './claims.ts';

export interface NewAccount {
  readonly username: string;
  readonly email: string;
  readonly password: string;
  readonly plan: Plan;
  /** The source address of a person who signs up. */
  readonly address?: string;
}

type AccountContext = Context & { readonly vault: Vault; readonly passwords: PasswordHasher };
type CreationContext = AccountContext & AddressContext & { readonly failpoint: Failpoint };
type Refused = { readonly refused: Refusal };

export async function createAccount(
  context: CreationContext,
  cause: Cause,
  wanted: NewAccount,
): Promise<{ readonly id: AccountId } | Refused> {
  const invalid = creationRefusal(context, wanted);
  if (invalid !== null) return refuse(invalid);
  const id = context.ids.next<AccountId>();
  const usernameTaken = refuse({ code: 'username-taken', username: wanted.username });
  const [emailClaim, ...otherSpellings] = await claimsOfEmail(context, wanted.email);
  // Most creations that will be refused are refused here, and write nothing.
  if (await isTaken(context, usernameClaims, wanted.username)) return usernameTaken;
  for (const claim of [emailClaim, ...otherSpellings]) {
    if (await isTaken(context, emailClaims, claim)) return refuse({ code: 'email-taken' });
  }
  if ((await claimName(context, cause, usernameClaims, wanted.username, id)) === null) return usernameTaken;
  await context.failpoint('account-username-claimed');
  if ((await claimName(context, cause, emailClaims, emailClaim, id, otherSpellings)) === null) {
    await settleClaim(context, cause, usernameClaims, wanted.username, id, 'Release');
    return refuse({ code: 'email-taken' });
  }
  await context.failpoint('account-email-claimed');
  // The vault records are written before the event that names them (docs/architecture.md, invariant 5).
  const emailRef = await context.vault.put(id, 'email', wanted.email);
  const { address = '' } = wanted;
  const passwordHash = await context.passwords.hash(wanted.password, { kind: 'stranger', address });
  const passwordHashRef = await context.vault.put(id, 'password-hash', passwordHash);
  const sourceAddressRef = address === '' ? null : await context.vault.put(id, 'source-address', address);
  const created = await execute(
    context,
    accounts,
    id,
    { account: id, cause: { ...cause, sourceAddressRef } },
    (state) =>
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
  await context.failpoint('account-username-confirmed');
  await settleClaim(context, cause, emailClaims, emailClaim, id, 'Confirm');
  return { id };
}

type Entered = Pick<NewAccount, 'username' | 'email' | 'password'>;

/** Returns the refusal of a username, address or password that no account may have. */
export function creationRefusal(context: Pick<AddressContext, 'spellDomain'>, entered: Entered): Refusal | null {
  return creationRefusals(context, entered)[0] ?? null;
}

/** Returns the refusals of all three. */
export function creationRefusals(
  { spellDomain }: Pick<AddressContext, 'spellDomain'>,
  { username, email, password }: Entered,
): readonly Refusal[] {
  return [usernameRefusal(username), emailRefusal(email, spellDomain), passwordRefusal(password)].filter(
    (refusal) => refusal !== null,
  );
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

/** `guarding` is absent for operators, who act without a session. Resolves with the session epoch of the change. */
export async function changePassword(
  context: AccountContext,
  origin: { readonly account: AccountId; readonly cause: Cause; readonly guarding?: Guarding },
  password: string,
): Promise<{ readonly epoch: number } | Refused> {
  const { account } = origin;
  const invalid = passwordRefusal(password);
  if (invalid !== null) return refuse(invalid);
  const before = await context.entities.reload(accounts, account);
  if (before.state.status !== 'open') return refuse({ code: 'account-not-found' });
  const passwordHash = await context.passwords.hash(password, { kind: 'known', account });
  const passwordHashRef = await context.vault.put(account, 'password-hash', passwordHash);
  let superseded = before.state.passwordHashRef;
  const changed = await execute(context, accounts, account, origin, (state) => {
    // The last call of this function commits. Another change may have replaced the hash that was read before.
    if (state.status === 'open') superseded = state.passwordHashRef;
    return decideAccount(state, { type: 'ChangePassword', passwordHashRef });
  });
  if ('refused' in changed) return changed;
  await context.vault.delete(account, superseded);
  const { state } = changed.entity;
  if (state.status !== 'open') throw new TypeError('An account whose password was just changed is not open');
  return { epoch: sessionEpochOf(state) };
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
