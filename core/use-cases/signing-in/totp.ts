/**
 * Enrols TOTP keys and uses up their codes at sign-in.
 *
 * Invariants: a seed is in the vault before the event that names it, and is handed out once, by the call that made
 * it. `TotpCodeUsed` is the commit point of a code: of two nodes that check the same code only one appends it, because
 * the other decides again after the lost race.
 */
import { accounts } from '../../account/evolve.ts';
import { decideMfa, decideSecondFactor } from '../../account/mfa/decide.ts';
import { type ActiveTotp, isEnrolmentOver, type MfaToken } from '../../account/mfa/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { AccountId, MfaTokenId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { OneTimeCodes } from '../../ports/one-time-codes.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { unlessErased } from '../accounts/erased-account-refusal.ts';
import { type ActivatedToken, epochAfter, listMfaTokens, type MfaOrigin } from './mfa-tokens.ts';

export type TotpContext = Context & {
  readonly vault: Vault;
  readonly oneTimeCodes: OneTimeCodes;
  readonly failpoint: Failpoint;
};

type Refused = { readonly refused: Refusal };

/** A key that its owner must now copy into an authenticator app. No later call returns it. */
export interface NewTotp {
  readonly id: MfaTokenId;
  /** In base32. */
  readonly seed: string;
  readonly url: string;
}

/** Makes a key and its pending token. The caller has asked for the password again. */
export async function beginTotpEnrolment(
  context: TotpContext,
  origin: MfaOrigin,
  name: string,
): Promise<NewTotp | Refused> {
  const { vault, oneTimeCodes, failpoint } = context;
  const { account } = origin;
  const id = context.ids.next<MfaTokenId>();
  const seed = oneTimeCodes.newSeed();
  const seedRef = await unlessErased(vault.put(account, 'totp-seed', seed));
  if (typeof seedRef !== 'string') return seedRef;
  await failpoint('mfa-seed-stored');
  const begun = await execute(context, accounts, account, origin, (state) =>
    decideMfa(state, { type: 'BeginTotpEnrolment', id, name, seedRef }),
  );
  if ('refused' in begun) {
    await vault.delete(account, seedRef);
    return begun;
  }
  await failpoint('mfa-enrolment-begun');
  const { state } = begun.entity;
  if (state.status !== 'open') throw new TypeError('An account that was just changed is not open');
  return { id, seed, url: oneTimeCodes.enrolmentUrl(seed, state.username) };
}

/** Activates a pending token with a code of its key, and ends the account's sessions. The code is used up. */
export async function activateTotp(
  context: TotpContext,
  origin: MfaOrigin,
  id: MfaTokenId,
  code: string,
): Promise<ActivatedToken | Refused> {
  const token = (await listMfaTokens(context, origin.account)).find((one) => one.id === id);
  if (token?.kind !== 'totp') return refuse({ code: 'mfa-token-not-found' });
  if (token.status === 'active') return refuse({ code: 'mfa-token-active' });
  const now = context.clock.now();
  if (isEnrolmentOver(token, now)) return refuse({ code: 'mfa-enrolment-over' });
  const seed = await context.vault.get(origin.account, 'totp-seed', token.seedRef);
  // The record is removed after the token was deleted: another request did so first.
  if (seed === null) return refuse({ code: 'mfa-token-not-found' });
  const step = context.oneTimeCodes.stepOf(seed, code, now);
  if (step === null) return refuse({ code: 'mfa-code-wrong' });
  const activated = await execute(context, accounts, origin.account, origin, (account) =>
    decideMfa(account, { type: 'ActivateTotp', id, step, now: context.clock.now() }),
  );
  if ('refused' in activated) return activated;
  await context.failpoint('mfa-token-activated');
  return { activated: id, epoch: epochAfter(activated) };
}

/** Uses up a code of any active TOTP token of the account. The caller has checked the password and the rate. */
export async function useTotpCode(
  context: TotpContext,
  origin: MfaOrigin,
  code: string,
): Promise<{ readonly used: MfaTokenId } | Refused> {
  const tokens = (await listMfaTokens(context, origin.account)).filter(isActiveTotp);
  const found = await Promise.all(tokens.map((token) => matching(context, origin.account, token, code)));
  const matches = found.filter((match) => match !== null);
  // By chance two keys may show the same code.
  const match = matches.find(({ token, step }) => step > token.lastStep) ?? matches[0];
  if (match === undefined) return refuse({ code: 'mfa-code-wrong' });
  const { token, step } = match;
  const used = await execute(context, accounts, origin.account, origin, (account) =>
    decideSecondFactor(account, { type: 'UseTotpCode', id: token.id, step }),
  );
  return 'refused' in used ? used : { used: token.id };
}

function isActiveTotp(token: MfaToken): token is ActiveTotp {
  return token.kind === 'totp' && token.status === 'active';
}

async function matching(
  { vault, oneTimeCodes, clock }: TotpContext,
  account: AccountId,
  token: ActiveTotp,
  code: string,
): Promise<{ readonly token: ActiveTotp; readonly step: number } | null> {
  const seed = await vault.get(account, 'totp-seed', token.seedRef);
  const step = seed === null ? null : oneTimeCodes.stepOf(seed, code, clock.now());
  return step === null ? null : { token, step };
}
