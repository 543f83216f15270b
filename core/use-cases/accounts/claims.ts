/**
 * Claims of usernames and email addresses: they are claimed, taken over, confirmed and released.
 *
 * Invariants: a claim is taken over only if its account cannot use the name any more. An account that was never
 * created is abandoned first. An account that claimed an address for a change keeps another address at the takeover:
 * the append is guarded by its stream, as the change is guarded by the stream of the claim.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { emailKey } from '../../account/names.ts';
import type { ClosedAccount, OpenAccount } from '../../account/state.ts';
import { decideClaim } from '../../claim/decide.ts';
import type { ClaimEvent } from '../../claim/events.ts';
import { emailClaims, type usernameClaims } from '../../claim/evolve.ts';
import { type Claim, hasRunOut } from '../../claim/state.ts';
import { accept, refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import type { StreamGuard } from '../../ports/event-store.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';

/** How long a claimed name stays reserved if its account was never created (docs/architecture.md, Claims). */
export const CLAIM_SPAN_MS = 10 * 60_000;

export type ClaimDecider = typeof usernameClaims;

type ClaimContext = Context & { readonly vault: Pick<Vault, 'get' | 'fingerprint'> };

/** Claims a name. Resolves with the claim if the name is now claimed for the account, else with null. */
export async function claimName(
  context: ClaimContext,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  account: AccountId,
): Promise<Entity<Claim> | null> {
  const now = context.clock.now();
  const until = plusMs(now, CLAIM_SPAN_MS);
  const lapsed = await holderOfLapsed(context, decider, name, now);
  let former: Former | null = null;
  const guarding: Guarding = async () => {
    former = lapsed === null || lapsed === account ? null : await abandonFormer(context, cause, decider, name, lapsed);
    return { guards: former === null ? [] : [former.guard] };
  };
  const claimed = await execute(context, decider, name, { account, cause, guarding }, (current) => {
    const abandoned = former?.account ?? null;
    const decision = decideClaim(current, { type: 'Claim', account, now, until, abandoned });
    return 'taken' in decision ? refuse({ code: 'username-taken', username: name }) : decision;
  });
  return 'refused' in claimed ? null : claimed.entity;
}

/** An account whose claim may be taken over while its stream stands at the guard's revision. */
interface Former {
  readonly account: AccountId;
  readonly guard: StreamGuard;
}

/** Returns the account whose claim on the name has lapsed; null if there is none. */
async function holderOfLapsed(
  context: Context,
  decider: ClaimDecider,
  name: string,
  now: Timestamp,
): Promise<AccountId | null> {
  const { state } = await context.entities.reload(decider, name);
  return state.status === 'pending' && hasRunOut(state, now) ? state.account : null;
}

/**
 * Makes sure that the account, whose claim on the name had lapsed, cannot use the name. Returns null if it has the name
 * for good.
 */
async function abandonFormer(
  context: ClaimContext,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  former: AccountId,
): Promise<Former | null> {
  const abandoned = await execute(context, accounts, former, { account: former, cause }, (account) =>
    decideAccount(account, { type: 'AbandonAccount' }),
  );
  if ('refused' in abandoned) throw new TypeError('Abandoning is never refused');
  const { state: owner, stream, revision } = abandoned.entity;
  const guard = { stream, revision };
  if (owner.status === 'absent' || owner.status === 'abandoned') return { account: former, guard };
  if (decider.category === emailClaims.category) {
    const isItsAddress = owner.status !== 'erased' && (await emailClaimOf(context, former, owner)) === name;
    if (!isItsAddress) return { account: former, guard };
  }
  // The account has the name, but its claim was never confirmed: confirm it now.
  await settleClaim(context, cause, decider, name, former, 'Confirm');
  return null;
}

/** Returns the name of the claim of the account's address; null if the account has been erased. */
export async function emailClaimOf(
  { vault }: Pick<ClaimContext, 'vault'>,
  account: AccountId,
  state: OpenAccount | ClosedAccount,
): Promise<string | null> {
  const email = await vault.get(account, 'email', state.emailRef);
  return email === null ? null : vault.fingerprint('email', emailKey(email));
}

/**
 * Confirms or releases the account's claim on a name. Idempotent; does nothing if the name is another account's now, or
 * if `guarding` refuses.
 */
export async function settleClaim(
  context: Context,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  account: AccountId,
  type: 'Confirm' | 'Release',
  guarding?: Guarding,
): Promise<void> {
  const about = { account, cause, ...(guarding === undefined ? {} : { guarding }) };
  await execute(context, decider, name, about, (state) => {
    const decision = decideClaim(state, { type, account });
    // Another account took the name over: this account has no claim left to settle.
    return 'taken' in decision ? accept<ClaimEvent>() : decision;
  });
}

/** Returns true if a new account could not get the name now. For a first answer: only `claimName` decides. */
export async function isTaken(context: Context, decider: ClaimDecider, name: string): Promise<boolean> {
  const { state } = await context.entities.get(decider, name);
  return state.status === 'held' || (state.status === 'pending' && !hasRunOut(state, context.clock.now()));
}
