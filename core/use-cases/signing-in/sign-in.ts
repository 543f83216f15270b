/**
 * Signs a person in by username or email address, and password.
 *
 * Invariants: the answer is the same, in words and in time, for an unknown account, one that cannot be used, and a
 * wrong password. So each of them costs one comparison of a password, and the answer does not wait for the event of a
 * failure. A failure is counted before its password is compared (password-guesses.ts).
 */
import { accounts } from '../../account/evolve.ts';
import { emailKeys } from '../../account/names.ts';
import { type ClosedAccount, needsSecondFactor, type OpenAccount, sessionEpochOf } from '../../account/state.ts';
import { emailClaims } from '../../claim/evolve.ts';
import { accept, refuse } from '../../kernel/decider.ts';
import type { Actor, Cause } from '../../kernel/envelope.ts';
import type { AccountId } from '../../kernel/ids.ts';
import { EMAIL_LENGTH_MAX, PASSWORD_LENGTH_MAX, USER_AGENT_LENGTH_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { asciiLowerCase, codePointCount, startOfText } from '../../kernel/text.ts';
import type { VaultField, VaultRef } from '../../kernel/vault-ref.ts';
import type { Background } from '../../ports/background.ts';
import type { PasswordHasher, PasswordTurn } from '../../ports/password-hasher.ts';
import type { RateLimits } from '../../ports/rate-limits.ts';
import { type Vault, VaultError } from '../../ports/vault.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import type { Factor, SignInEvent } from '../../sign-in/events.ts';
import { signIns, signInsOn } from '../../sign-in/evolve.ts';
import { findAccountState } from '../accounts/accounts.ts';
import { type AddressContext, claimsOfEmail } from '../accounts/claims.ts';
import { isEnterable } from '../callers/authenticate.ts';
import { countsOf, unlessFailed } from '../callers/password-guesses.ts';

export interface SignInContext extends Context, AddressContext {
  readonly vault: Pick<Vault, 'put' | 'get' | 'fingerprint'>;
  readonly passwords: PasswordHasher;
  readonly rateLimits: RateLimits;
  readonly background: Background;
}

/** Where a request came from. */
export interface Origin {
  readonly requestId: string;
  /** The source address; empty if it is not known. */
  readonly address: string;
  /** Null if the request named none. */
  readonly userAgent: string | null;
}

export interface SignInAttempt {
  /** A username or an email address, as typed. */
  readonly login: string;
  readonly password: string;
  /**
   * Returns the id of the browser if it holds the cookie of an earlier sign-in to the account, else null. Null for a
   * browser without such a cookie.
   */
  readonly knownBrowser: ((account: AccountId) => string | null) | null;
}

/** Whose password was right. */
export interface SignedInPerson {
  readonly account: AccountId;
  readonly username: string;
  /** `closed`: the person may only reopen the account. */
  readonly status: 'open' | 'closed';
  /** The session epoch that the session is to remember (`SessionOf`). */
  readonly epoch: number;
  /** If true, the person is not signed in before a second factor was right, and nothing is in the log yet. */
  readonly secondFactor: boolean;
}

/** The caller must have awaited `entities.barrier()`. Refused with `sign-in-failed` or `too-many-attempts`. */
export async function signIn(
  context: SignInContext,
  origin: Origin,
  { login, password, knownBrowser }: SignInAttempt,
): Promise<SignedInPerson | { readonly refused: Refusal }> {
  const stranger: PasswordTurn = { kind: 'stranger', address: origin.address };
  // Looking the account up costs more than this, and only then it is known whether the browser is.
  if (knownBrowser === null) context.passwords.expectRoom(stranger);
  const typed = login.trim();
  const found = await findEnterable(context, typed);
  const browser = found === null ? null : (knownBrowser?.(found.account) ?? null);
  const turn = found === null || browser === null ? stranger : ({ kind: 'known', account: found.account } as const);
  context.passwords.expectRoom(turn);
  const [name] = emailKeys(typed, context.spellDomain);
  const counts = countsOf({ of: `sign-in ${name}`, address: origin.address, browser });
  const waitSeconds = await context.rateLimits.take(counts);
  if (waitSeconds !== null) return refuse({ code: 'too-many-attempts', waitSeconds });
  const isRight = await unlessFailed(context.rateLimits, counts, () => compare(context, found, password, turn));
  if (found === null || !isRight) {
    if (found !== null)
      context.background.run('sign-in-failed', () => recordFailure(context, origin, found.account, WRONG_PASSWORD));
    return refuse({ code: 'sign-in-failed' });
  }
  await context.rateLimits.giveBack(counts);
  const { account, state } = found;
  const { username, status } = state;
  const secondFactor = needsSecondFactor(state);
  if (!secondFactor) await recordSignIn(context, origin, account, ['password']);
  return { account, username, status, epoch: sessionEpochOf(state), secondFactor };
}

interface Found {
  readonly account: AccountId;
  readonly state: OpenAccount | ClosedAccount;
}

/** Finds the account that a person who typed this may sign in to. */
async function findEnterable(context: SignInContext, login: string): Promise<Found | null> {
  if (login.length > EMAIL_LENGTH_MAX) return null;
  const found = login.includes('@')
    ? await findByEmail(context, login)
    : await findAccountState(context, asciiLowerCase(login));
  if (found === null || !isEnterable(found.state, context.clock.now())) return null;
  return { account: found.id, state: found.state };
}

async function findByEmail(context: SignInContext, email: string) {
  // Two accounts may have claimed the two spellings of a domain before these were one: each is found by its own.
  const asTyped = await context.vault.fingerprint('email', email.toLowerCase());
  const claims = new Set([asTyped, ...(await claimsOfEmail(context, email))]);
  let found: AccountId | null = null;
  for (const claim of claims) {
    const { state: claimed } = await context.entities.get(emailClaims, claim);
    if (claimed.status !== 'free') found ??= claimed.account;
  }
  if (found === null) return null;
  const { state } = await context.entities.get(accounts, found);
  return { id: found, state };
}

async function compare(
  { vault, passwords }: Pick<SignInContext, 'vault' | 'passwords'>,
  found: Found | null,
  password: string,
  turn: PasswordTurn,
): Promise<boolean> {
  const hash = found === null ? null : await vault.get(found.account, 'password-hash', found.state.passwordHashRef);
  // No account has a longer password, and hashing one would take longer.
  const isPossible = codePointCount(password) <= PASSWORD_LENGTH_MAX;
  return passwords.verify(isPossible ? password : '', isPossible ? hash : null, turn);
}

/**
 * Appends `SignedIn`. For a person with a second factor the caller appends it after that was right, with all factors in
 * the order in which the person presented them.
 */
export async function recordSignIn(
  context: Pick<SignInContext, keyof Context | 'vault'>,
  origin: Origin,
  account: AccountId,
  factors: readonly Factor[],
): Promise<void> {
  const data = { factors, user_agent_ref: await userAgentRef(context, origin, account) };
  await recordSignInEvent(context, origin, account, { kind: 'user', id: account }, { type: 'SignedIn', data });
}

const WRONG_PASSWORD = { factor: 'password', reason: 'password-wrong' } as const;

/** Appends `SignInFailed` for the factor that was wrong. */
export async function recordFailure(
  context: Pick<SignInContext, keyof Context | 'vault'>,
  origin: Origin,
  account: AccountId,
  failure: { readonly factor: Factor; readonly reason: string },
): Promise<void> {
  const data = { ...failure, user_agent_ref: await userAgentRef(context, origin, account) };
  await recordSignInEvent(context, origin, account, { kind: 'system', id: 'sign-in' }, { type: 'SignInFailed', data });
}

/** Appends an event to the account's sign-ins of the day. */
export async function recordSignInEvent(
  context: Pick<SignInContext, keyof Context | 'vault'>,
  origin: Origin,
  account: AccountId,
  actor: Actor,
  event: SignInEvent,
): Promise<void> {
  const cause = await causeOf(context, origin, account, actor);
  const id = signInsOn(account, context.clock.now());
  const recorded = await execute(context, signIns, id, { account, cause }, () => accept(event));
  if ('refused' in recorded) throw new TypeError(`A sign-in was refused: ${recorded.refused.code}`);
}

/** Returns the cause of an event of a sign-in. The address is in the vault when it resolves. */
export async function causeOf(
  context: Pick<SignInContext, 'vault'>,
  { requestId, address }: Origin,
  account: AccountId,
  actor: Actor,
): Promise<Cause> {
  const sourceAddressRef = address === '' ? null : await put(context, account, 'source-address', address);
  return { actor, requestId, sourceAddressRef, causationId: null };
}

function userAgentRef(
  context: Pick<SignInContext, 'vault'>,
  { userAgent }: Origin,
  account: AccountId,
): Promise<VaultRef | null> {
  if (userAgent === null || userAgent === '') return Promise.resolve(null);
  return put(context, account, 'user-agent', startOfText(userAgent, USER_AGENT_LENGTH_MAX));
}

/** Null if the account has been erased: then nothing about the person is stored. */
async function put(
  { vault }: Pick<SignInContext, 'vault'>,
  account: AccountId,
  field: VaultField,
  value: string,
): Promise<VaultRef | null> {
  try {
    return await vault.put(account, field, value);
  } catch (error) {
    if (error instanceof VaultError && error.code === 'account-erased') return null;
    throw error;
  }
}
