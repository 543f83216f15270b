/**
 * Ends sessions on their person's wish.
 *
 * Invariants: a session is removed before its event is appended, so that one whose end is in the log lets nobody in.
 * If the node dies between the two, the session has ended and the log does not say so.
 */
import type { AccountId } from '../../kernel/ids.ts';
import type { SessionStore } from '../../ports/session-store.ts';
import type { Context } from '../../runtime/execute.ts';
import { type Origin, recordSignInEvent, type SignInContext } from './sign-in.ts';

export interface SessionsContext extends Context {
  readonly sessions: Pick<SessionStore, 'revoke' | 'revokeOthers'>;
  readonly vault: SignInContext['vault'];
}

/** A session, by the handle that names it in lists. */
export interface SessionHandle {
  readonly account: AccountId;
  readonly session: string;
}

/** Appends `SignedOut`, for a session that its browser has just ended. */
export async function recordSignOut(
  context: Omit<SessionsContext, 'sessions'>,
  origin: Origin,
  { account, session }: SessionHandle,
): Promise<void> {
  const event = { type: 'SignedOut', data: { session_id: session } } as const;
  await recordSignInEvent(context, origin, account, { kind: 'user', id: account }, event);
}

/** Ends the account's session with this handle. Returns false if there is none. */
export async function revokeSession(
  context: SessionsContext,
  origin: Origin,
  account: AccountId,
  session: string,
): Promise<boolean> {
  if (!(await context.sessions.revoke(account, session))) return false;
  await recordRevoked(context, origin, account, [session]);
  return true;
}

/** Ends every session of the account but this one. */
export async function revokeOtherSessions(
  context: SessionsContext,
  origin: Origin,
  { account, session }: SessionHandle,
): Promise<void> {
  const revoked = await context.sessions.revokeOthers(account, session);
  if (revoked.length > 0) await recordRevoked(context, origin, account, revoked);
}

async function recordRevoked(
  context: SessionsContext,
  origin: Origin,
  account: AccountId,
  sessions: readonly string[],
): Promise<void> {
  const event = { type: 'SessionsRevoked', data: { session_ids: sessions } } as const;
  await recordSignInEvent(context, origin, account, { kind: 'user', id: account }, event);
}
