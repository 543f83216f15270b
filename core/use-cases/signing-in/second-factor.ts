/**
 * Ends a sign-in that needs a second factor: a code of an app, or a passkey.
 *
 * Invariants: the person has given the right password, and nothing that ends sessions has happened since. Each try
 * is counted before its factor is checked, and given back if it was right, as guesses of passwords are. What was
 * presented is used up before the sign-in counts.
 */
import { accounts } from '../../account/evolve.ts';
import { sessionEpochOf } from '../../account/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { AccountId, MfaTokenId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { isEnterable } from '../callers/authenticate.ts';
import { countsOf, unlessFailed } from '../callers/password-guesses.ts';
import type { MfaOrigin } from './mfa-tokens.ts';
import { type PasskeyContext, usePasskey } from './passkeys.ts';
import {
  causeOf,
  type Origin,
  recordFailure,
  recordSignIn,
  type SignedInPerson,
  type SignInContext,
} from './sign-in.ts';
import { type TotpContext, useTotpCode } from './totp.ts';

export type SecondFactorContext = SignInContext & PasskeyContext & TotpContext;

export type SecondFactor =
  | { readonly kind: 'totp'; readonly code: string }
  /** A browser's answer to `promptForPasskey`, as JSON. */
  | { readonly kind: 'passkey'; readonly answer: string };

/** What is known of the person since the password was right. */
export interface SecondFactorAttempt {
  readonly account: AccountId;
  /** The session epoch of the account at that time. */
  readonly epoch: number;
  readonly factor: SecondFactor;
  /** The id of the browser if it holds the cookie of an earlier sign-in to the account; null for any other browser. */
  readonly browser: string | null;
}

type Refused = { readonly refused: Refusal };

/**
 * The caller must have awaited `entities.barrier()`. Refused with `session-no-longer-valid` if the person must give the
 * password again, with `too-many-attempts`, or with what is wrong with the factor.
 */
export async function giveSecondFactor(
  context: SecondFactorContext,
  origin: Origin,
  { account, epoch, factor, browser }: SecondFactorAttempt,
): Promise<SignedInPerson | Refused> {
  const { state } = await context.entities.get(accounts, account);
  if (!isEnterable(state, context.clock.now()) || sessionEpochOf(state) !== epoch)
    return refuse({ code: 'session-no-longer-valid' });
  const counts = countsOf({ of: `mfa ${account}`, address: origin.address, browser });
  const waitSeconds = await context.rateLimits.take(counts);
  if (waitSeconds !== null) return refuse({ code: 'too-many-attempts', waitSeconds });
  const cause = await causeOf(context, origin, account, { kind: 'user', id: account });
  const used = await unlessFailed(context.rateLimits, counts, () => use(context, { account, cause }, factor));
  if ('refused' in used) {
    const failure = { factor: factor.kind, reason: used.refused.code };
    context.background.run('sign-in-failed', () => recordFailure(context, origin, account, failure));
    return used;
  }
  await context.rateLimits.giveBack(counts);
  await recordSignIn(context, origin, account, ['password', factor.kind]);
  return { account, username: state.username, status: state.status, epoch, secondFactor: true };
}

function use(
  context: SecondFactorContext,
  origin: MfaOrigin,
  factor: SecondFactor,
): Promise<{ readonly used: MfaTokenId } | Refused> {
  switch (factor.kind) {
    case 'totp':
      return useTotpCode(context, origin, factor.code);
    case 'passkey':
      return usePasskey(context, origin, factor.answer);
  }
}
