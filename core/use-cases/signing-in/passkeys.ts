/**
 * Enrols passkeys and checks their signatures at sign-in.
 *
 * Invariants: a challenge is taken before its answer is verified, so an answer is verified once, whatever comes of
 * it. A signature is compared only with passkeys of the account that gave its password. Credential ids and public keys
 * are in the vault before the event that names them. A valid signature whose counter went back is refused, and the
 * event that says so is appended.
 */
import { accounts } from '../../account/evolve.ts';
import { decideMfa, decideSecondFactor } from '../../account/mfa/decide.ts';
import { type ActivePasskey, isEnrolmentOver, type MfaToken } from '../../account/mfa/state.ts';
import { refuse } from '../../kernel/decider.ts';
import { type AccountId, type MfaTokenId, plusMs } from '../../kernel/ids.ts';
import { canonicalJson, type JsonObject } from '../../kernel/json.ts';
import { PASSKEY_CHALLENGE_SPAN_MS } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { PasskeyChallenges } from '../../ports/passkey-challenges.ts';
import type { Passkey, PasskeyAnswer, PasskeyPrompt, Passkeys } from '../../ports/passkeys.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute } from '../../runtime/execute.ts';
import { unlessErased } from '../accounts/erased-account-refusal.ts';
import { type ActivatedToken, epochAfter, listMfaTokens, type MfaOrigin } from './mfa-tokens.ts';

export type PasskeyContext = Context & {
  readonly vault: Vault;
  readonly passkeys: Passkeys;
  readonly challenges: PasskeyChallenges;
  readonly failpoint: Failpoint;
};

type Refused = { readonly refused: Refusal };
const NOT_FOUND: Refused = { refused: { code: 'mfa-token-not-found' } };
const NOT_VERIFIED: Refused = { refused: { code: 'mfa-passkey-refused' } };

const SIGN_IN = 'sign-in';

/** Makes a pending token. The caller has asked for the password again. */
export async function beginPasskeyEnrolment(
  context: Context & { readonly failpoint: Failpoint },
  origin: MfaOrigin,
  name: string,
): Promise<{ readonly id: MfaTokenId } | Refused> {
  const id = context.ids.next<MfaTokenId>();
  const begun = await execute(context, accounts, origin.account, origin, (account) =>
    decideMfa(account, { type: 'BeginPasskeyEnrolment', id, name, now: context.clock.now() }),
  );
  if ('refused' in begun) return begun;
  await context.failpoint('mfa-enrolment-begun');
  return { id };
}

/** Returns what the browser is to ask of an authenticator, which makes the passkey of a pending token. */
export async function promptForNewPasskey(
  context: PasskeyContext,
  account: AccountId,
  id: MfaTokenId,
): Promise<{ readonly options: JsonObject } | Refused> {
  const { state } = await context.entities.get(accounts, account);
  const token = state.status === 'open' ? state.mfaTokens.get(id) : undefined;
  if (state.status !== 'open' || token?.kind !== 'passkey') return NOT_FOUND;
  if (token.status === 'active') return refuse({ code: 'mfa-token-active' });
  if (isEnrolmentOver(token, context.clock.now())) return refuse({ code: 'mfa-enrolment-over' });
  const known = await passkeysOf(context, account);
  const passkeys = known.map(({ passkey }) => passkey);
  const prompt = await context.passkeys.creationPrompt({ account, username: state.username }, passkeys);
  return keepChallenge(context, account, id, prompt);
}

/** Activates a pending token with the browser's answer, and ends the account's sessions. */
export async function activatePasskey(
  context: PasskeyContext,
  origin: MfaOrigin,
  id: MfaTokenId,
  answerText: string,
): Promise<ActivatedToken | Refused> {
  const { account } = origin;
  const answer = await takeAnswer(context, account, id, answerText);
  if ('refused' in answer) return answer;
  const created = await context.passkeys.verifyCreation(answer, answer.challenge);
  if (created === null) return NOT_VERIFIED;
  const { passkey, signCount } = created;
  const known = await passkeysOf(context, account);
  if (known.some((one) => one.passkey.credentialId === passkey.credentialId))
    return refuse({ code: 'mfa-passkey-known' });
  const passkeyRef = await unlessErased(context.vault.put(account, 'passkey', passkeyRecord(id, passkey)));
  if (typeof passkeyRef !== 'string') return passkeyRef;
  await context.failpoint('mfa-passkey-stored');
  const activated = await execute(context, accounts, account, origin, (state) =>
    decideMfa(state, { type: 'ActivatePasskey', id, passkeyRef, signCount, now: context.clock.now() }),
  );
  if ('refused' in activated) {
    await context.vault.delete(account, passkeyRef);
    return activated;
  }
  await context.failpoint('mfa-token-activated');
  return { activated: id, epoch: epochAfter(activated) };
}

/** Returns what the browser is to ask of an authenticator at sign-in; null if the account has no active passkey. */
export async function promptForPasskey(
  context: PasskeyContext,
  account: AccountId,
): Promise<{ readonly options: JsonObject } | null> {
  const known = await passkeysOf(context, account);
  if (known.length === 0) return null;
  return keepChallenge(
    context,
    account,
    SIGN_IN,
    await context.passkeys.signaturePrompt(known.map(({ passkey }) => passkey)),
  );
}

/** Accepts the browser's answer to `promptForPasskey`, once. The caller has checked the password and the rate. */
export async function usePasskey(
  context: PasskeyContext,
  origin: MfaOrigin,
  answerText: string,
): Promise<{ readonly used: MfaTokenId } | Refused> {
  const { account } = origin;
  const answer = await takeAnswer(context, account, SIGN_IN, answerText);
  if ('refused' in answer) return answer;
  if (answer.account !== null && answer.account !== account) return NOT_VERIFIED;
  const known = await passkeysOf(context, account);
  const found = known.find(({ passkey }) => passkey.credentialId === answer.credentialId);
  if (found === undefined) return NOT_VERIFIED;
  const verified = await context.passkeys.verifySignature(answer, answer.challenge, found.passkey);
  if (verified === null) return NOT_VERIFIED;
  const { id } = found.token;
  let regressed = false;
  const used = await execute(context, accounts, account, origin, (state) => {
    const decision = decideSecondFactor(state, { type: 'UsePasskey', id, signCount: verified.signCount });
    // The last call of this function is the one that commits.
    regressed = 'events' in decision && decision.events.some(({ type }) => type === 'PasskeyCounterRegressed');
    return decision;
  });
  if ('refused' in used) return used;
  return regressed ? refuse({ code: 'mfa-passkey-counter-regressed' }) : { used: id };
}

async function keepChallenge(
  { challenges, clock }: PasskeyContext,
  account: AccountId,
  purpose: string,
  { challenge, options }: PasskeyPrompt,
): Promise<{ readonly options: JsonObject }> {
  const now = clock.now();
  await challenges.put({ account, purpose, challenge }, { now, expiresAt: plusMs(now, PASSKEY_CHALLENGE_SPAN_MS) });
  return { options };
}

/** Parses the answer and takes its challenge, which then works for no other answer. */
async function takeAnswer(
  { passkeys, challenges, clock, failpoint }: PasskeyContext,
  account: AccountId,
  purpose: string,
  answerText: string,
): Promise<PasskeyAnswer | Refused> {
  const answer = passkeys.parseAnswer(answerText);
  if (answer === null) return NOT_VERIFIED;
  const { challenge } = answer;
  if (!(await challenges.take({ account, purpose, challenge }, clock.now())))
    return refuse({ code: 'mfa-passkey-challenge-over' });
  await failpoint('mfa-challenge-taken');
  return answer;
}

interface KnownPasskey {
  readonly token: ActivePasskey;
  readonly passkey: Passkey;
}

/** Returns the account's active passkeys. One that was deleted after the state was read is left out. */
async function passkeysOf(context: PasskeyContext, account: AccountId): Promise<readonly KnownPasskey[]> {
  const tokens = (await listMfaTokens(context, account)).filter(isActivePasskey);
  const known = await Promise.all(
    tokens.map(async (token) => {
      const record = await context.vault.get(account, 'passkey', token.passkeyRef);
      return record === null ? null : { token, passkey: parsePasskeyRecord(record) };
    }),
  );
  return known.filter((one) => one !== null);
}

function isActivePasskey(token: MfaToken): token is ActivePasskey {
  return token.kind === 'passkey' && token.status === 'active';
}

/** Equal values share a vault record, so the id makes each token's record a different value. */
function passkeyRecord(id: MfaTokenId, { credentialId, publicKey }: Passkey): string {
  return canonicalJson({ id, credential_id: credentialId, public_key: publicKey });
}

function parsePasskeyRecord(record: string): Passkey {
  const stored = JSON.parse(record) as { readonly credential_id: string; readonly public_key: string };
  return { credentialId: stored.credential_id, publicKey: stored.public_key };
}
