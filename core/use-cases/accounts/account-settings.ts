/**
 * What a signed-in person changes about who may enter: password, email address, and the account itself.
 *
 * Invariants: each change asks for the password again, and its append is guarded by the session. So a password that
 * was right is still the account's at the commit, and nobody who only found a signed-in browser takes the account over.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import { ACCOUNT_CLOSED_SPAN_MS, PASSWORD_LENGTH_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import type { PasswordHasher } from '../../ports/password-hasher.ts';
import type { RateLimits } from '../../ports/rate-limits.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { countsOf, unlessFailed } from '../callers/password-guesses.ts';
import { changePassword } from './accounts.ts';
import { changeEmail, type EmailContext } from './change-email.ts';

export interface OwnAccountContext extends EmailContext {
  readonly passwords: PasswordHasher;
  readonly rateLimits: RateLimits;
}

/** A change that a person makes in a session. */
export interface OwnOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  /** By the session (`guardedBy`). */
  readonly guarding: Guarding;
}

/** The password that the person typed again, and where. */
export interface Confirmation {
  readonly password: string;
  readonly address: string;
  /** The id of a browser that has signed in to the account before; null for any other. */
  readonly browser: string | null;
}

type Refused = { readonly refused: Refusal };

/**
 * Returns null if this is the account's password, else the refusal: `password-wrong` or `too-many-attempts`. Wrong ones
 * are limited as at sign-in, with counts of their own.
 */
export async function confirmPassword(
  context: Omit<OwnAccountContext, 'failpoint'>,
  account: AccountId,
  { password, address, browser }: Confirmation,
): Promise<Refused | null> {
  const turn = { kind: 'known', account } as const;
  context.passwords.expectRoom(turn);
  const { state } = await context.entities.get(accounts, account);
  if (state.status !== 'open') return refuse({ code: 'session-no-longer-valid' });
  const counts = countsOf({ of: `confirm ${account}`, address, browser });
  const waitSeconds = await context.rateLimits.take(counts);
  if (waitSeconds !== null) return refuse({ code: 'too-many-attempts', waitSeconds });
  if (codePointCount(password) > PASSWORD_LENGTH_MAX) return refuse({ code: 'password-wrong' });
  const isRight = await unlessFailed(context.rateLimits, counts, async () => {
    const hash = await context.vault.get(account, 'password-hash', state.passwordHashRef);
    return context.passwords.verify(password, hash, turn);
  });
  if (!isRight) return refuse({ code: 'password-wrong' });
  await context.rateLimits.giveBack(counts);
  return null;
}

/** Ends every other session. The session that made the change goes on in the epoch that is returned. */
export async function changeOwnPassword(
  context: OwnAccountContext,
  origin: OwnOrigin,
  confirmation: Confirmation,
  password: string,
): Promise<{ readonly epoch: number } | Refused> {
  const refused = await confirmPassword(context, origin.account, confirmation);
  return refused ?? changePassword(context, origin, password);
}

export async function changeOwnEmail(
  context: OwnAccountContext,
  origin: OwnOrigin,
  confirmation: Confirmation,
  email: string,
): Promise<{ readonly changed: true } | Refused> {
  const refused = await confirmPassword(context, origin.account, confirmation);
  return refused ?? changeEmail(context, origin, email);
}

/**
 * Closes the account: nobody can use it any more, tokens and git included, and every session ends. Its person may sign
 * in and reopen it until `eraseAt`; after that it is erased (erase-due-accounts.ts).
 */
export async function closeAccount(
  context: OwnAccountContext,
  origin: OwnOrigin,
  confirmation: Confirmation,
): Promise<{ readonly eraseAt: Timestamp } | Refused> {
  const refused = await confirmPassword(context, origin.account, confirmation);
  if (refused !== null) return refused;
  const eraseAt = plusMs(context.clock.now(), ACCOUNT_CLOSED_SPAN_MS);
  const closed = await execute(context, accounts, origin.account, origin, (state) =>
    decideAccount(state, { type: 'CloseAccount', eraseAt }),
  );
  return 'refused' in closed ? closed : { eraseAt };
}

/** Reopens the account of a session that began after the closing; that session goes on. */
export async function reopenAccount(
  context: Context,
  origin: { readonly account: AccountId; readonly cause: Cause; readonly epoch: number },
): Promise<{ readonly reopened: true } | Refused> {
  const { account, epoch } = origin;
  const reopened = await execute(context, accounts, account, origin, (state) =>
    decideAccount(state, { type: 'ReopenAccount', epoch, now: context.clock.now() }),
  );
  return 'refused' in reopened ? reopened : { reopened: true };
}

/** Returns the account's email address, for its person; null if the account is not open. */
export async function readOwnEmail(
  context: Pick<OwnAccountContext, 'entities' | 'vault'>,
  account: AccountId,
): Promise<string | null> {
  const { state } = await context.entities.get(accounts, account);
  return state.status === 'open' ? context.vault.get(account, 'email', state.emailRef) : null;
}
