/**
 * Makes a person's own account, and signs the person in.
 *
 * Invariants: a taken name or address is refused by name, because no mail is sent that could say it in private. So
 * the tries of a network are limited, whether they succeed or not.
 */
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { Vault } from '../../ports/vault.ts';
import { createAccount, creationRefusal, type NewAccount } from '../accounts/accounts.ts';
import { type NetworkLimits, networkCounts } from '../callers/network-counts.ts';
import { type Origin, recordSignIn, type SignedInPerson, type SignInContext } from './sign-in.ts';

/** Sign-ups that one network, and a /48 of IPv6, may try within an hour. */
export const SIGN_UPS_PER_HOUR_MAX = 20;
export const SIGN_UPS_PER_HOUR_WIDE_MAX = 100;

export interface SignUpContext extends SignInContext {
  readonly vault: Vault;
  readonly failpoint: Failpoint;
  /** Whether anybody may sign up. If not, the operator makes the accounts. */
  readonly signUpOpen: boolean;
}

const SIGN_UPS: NetworkLimits = {
  network: { name: 'sign-ups', timesMax: SIGN_UPS_PER_HOUR_MAX, spanMs: 60 * 60_000 },
  wide: { name: 'sign-ups-wide', timesMax: SIGN_UPS_PER_HOUR_WIDE_MAX, spanMs: 60 * 60_000 },
};

export async function signUp(
  context: SignUpContext,
  origin: Origin,
  wanted: Pick<NewAccount, 'username' | 'email' | 'password'>,
): Promise<SignedInPerson | { readonly refused: Refusal }> {
  if (!context.signUpOpen) return refuse({ code: 'sign-up-closed' });
  // A form that is only filled in wrongly costs nothing.
  const invalid = creationRefusal(context, wanted);
  if (invalid !== null) return refuse(invalid);
  const { requestId, address } = origin;
  context.passwords.expectRoom({ kind: 'stranger', address });
  const waitSeconds = await context.rateLimits.take(networkCounts(SIGN_UPS, address));
  if (waitSeconds !== null) return refuse({ code: 'too-many-attempts', waitSeconds });
  const actor = { kind: 'system', id: 'sign-up' } as const;
  const cause: Cause = { actor, requestId, sourceAddressRef: null, causationId: null };
  const created = await createAccount(context, cause, { ...wanted, plan: 'FREE', address });
  if ('refused' in created) return created;
  const account = created.id;
  await recordSignIn(context, origin, account, ['password']);
  return { account, username: wanted.username, status: 'open', epoch: 0, secondFactor: false };
}
