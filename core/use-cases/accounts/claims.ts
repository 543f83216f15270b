/**
 * Claims of usernames and email addresses: they are claimed, taken over, confirmed and released.
 *
 * Invariants: a claim is taken over only if its account cannot use the name any more. An account that was never
 * created is abandoned first. An account that claimed an address for a change keeps another address at the takeover:
 * the append is guarded by its stream, as the change is guarded by the stream of the claim.
 */
import { decideAccount } from '../../account/decide.ts';
import { accounts } from '../../account/evolve.ts';
import { emailKeys } from '../../account/names.ts';
import type { ClosedAccount, OpenAccount } from '../../account/state.ts';
import { decideClaim } from '../../claim/decide.ts';
import type { ClaimEvent } from '../../claim/events.ts';
import { emailClaims, type usernameClaims } from '../../claim/evolve.ts';
import { type Claim, hasRunOut } from '../../claim/state.ts';
import { accept, refuse } from '../../kernel/decider.ts';
import type { SpellDomain } from '../../kernel/domain-spellings.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccountId, plusMs, type Timestamp } from '../../kernel/ids.ts';
import type { StreamGuard } from '../../ports/event-store.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Entity } from '../../runtime/entity.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';

/** How long a claimed name stays reserved if its account was never created (docs/architecture.md, Claims). */
export const CLAIM_SPAN_MS = 10 * 60_000;

export type ClaimDecider = typeof usernameClaims;

/** What tells the names of the claims of an address. */
export interface AddressContext {
  readonly vault: Pick<Vault, 'get' | 'fingerprint'>;
  readonly spellDomain: SpellDomain;
}

type ClaimContext = Context & AddressContext;

/**
 * Claims a name. Resolves with the claim if the name is now claimed for the account, else with null. `others` are names
 * that stand for the same thing: none may be another account's, now or at the append.
 */
export async function claimName(
  context: ClaimContext,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  account: AccountId,
  others: readonly string[] = [],
): Promise<Entity<Claim> | null> {
  const now = context.clock.now();
  const until = plusMs(now, CLAIM_SPAN_MS);
  const lapsed = await holderOfLapsed(context, decider, name, now);
  let former: Former | null = null;
  const guarding: Guarding = async () => {
    former = lapsed === null || lapsed === account ? null : await abandonFormer(context, cause, decider, name, lapsed);
    const guards = former === null ? [] : [former.guard];
    for (const other of others) {
      const free = await guardsOfFree(context, cause, decider, other, account);
      if (free === null) return refuse({ code: 'username-taken', username: name });
      guards.push(...free);
    }
    return { guards };
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

/** Returns the guards of an append that relies on no other account having this name; null if one has it. */
async function guardsOfFree(
  context: ClaimContext,
  cause: Cause,
  decider: ClaimDecider,
  name: string,
  account: AccountId,
): Promise<readonly StreamGuard[] | null> {
  const { state, stream, revision } = await context.entities.reload(decider, name);
  const guard = { stream, revision };
  if (state.status === 'free' || state.account === account) return [guard];
  if (state.status === 'held' || !hasRunOut(state, context.clock.now())) return null;
  const former = await abandonFormer(context, cause, decider, name, state.account);
  return former === null ? null : [guard, former.guard];
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

/**
 * Returns the names of the claims of an address: first that of new claims, then those of accounts that claimed it when
 * each spelling of an international domain was an address of its own.
 */
export async function claimsOfEmail(
  { vault, spellDomain }: AddressContext,
  email: string,
): Promise<readonly [string, ...string[]]> {
  const [first, ...others] = emailKeys(email, spellDomain);
  const name = (key: string): Promise<string> => vault.fingerprint('email', key);
  return [await name(first), ...(await Promise.all(others.map(name)))];
}

/** Returns the name of the claim of the account's address; null if the account has been erased. */
export async function emailClaimOf(
  context: AddressContext & Pick<Context, 'entities'>,
  account: AccountId,
  state: OpenAccount | ClosedAccount,
): Promise<string | null> {
  const email = await context.vault.get(account, 'email', state.emailRef);
  if (email === null) return null;
  const names = await claimsOfEmail(context, email);
  if (names.length === 1) return names[0];
  let pending: string | null = null;
  for (const name of names) {
    const { state: claim } = await context.entities.reload(emailClaims, name);
    if (claim.status === 'free' || claim.account !== account) continue;
    if (claim.status === 'held') return name;
    pending ??= name;
  }
  return pending ?? names[0];
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
