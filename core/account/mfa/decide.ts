/**
 * Decides the commands of an account's MFA tokens.
 *
 * Invariants: a code whose time step was used, or is before one that was used, is refused. A signature whose counter
 * is not above the recorded one is refused too, and is recorded once for each token. A token is activated within
 * `MFA_ENROLMENT_SPAN_MS` or never: who finds a signed-in browser later cannot finish what its person began with the
 * password. Pending tokens count towards the limit as long as they are there, so enrolling fills no account.
 */
import { accept, type Decision, refuse } from '../../kernel/decider.ts';
import { MFA_TOKEN_NAME_LENGTH_MAX, MFA_TOKENS_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import type { Account } from '../state.ts';
import type { MfaCommand, SecondFactorCommand } from './commands.ts';
import type { MfaEvent } from './events.ts';
import { type AccountMfa, isEnrolmentOver, type MfaToken, pendingPasskey, vaultRefOf } from './state.ts';

export function decideMfa(account: Account, command: MfaCommand): Decision<MfaEvent> {
  if (account.status !== 'open') return refuse({ code: 'account-not-found' });
  switch (command.type) {
    case 'BeginTotpEnrolment': {
      const refusal = enrolmentRefusal(account, command.name);
      if (refusal !== null) return refuse(refusal);
      const { id: token_id, name, seedRef: seed_ref } = command;
      return accept<MfaEvent>({ type: 'TotpEnrolmentBegun', data: { token_id, name, seed_ref } });
    }
    case 'BeginPasskeyEnrolment': {
      const refusal = enrolmentRefusal(account, command.name);
      if (refusal !== null) return refuse(refusal);
      if (pendingPasskey(account.mfaTokens.values(), command.now) !== undefined)
        return refuse({ code: 'mfa-passkey-pending' });
      return accept<MfaEvent>({ type: 'PasskeyEnrolmentBegun', data: { token_id: command.id, name: command.name } });
    }
    case 'ActivateTotp':
    case 'ActivatePasskey':
    case 'RenameMfaToken':
    case 'DeleteMfaToken': {
      const token = account.mfaTokens.get(command.id);
      return token === undefined ? refuse({ code: 'mfa-token-not-found' }) : decideToken(token, command);
    }
  }
}

function enrolmentRefusal({ mfaTokens }: AccountMfa, name: string): Refusal | null {
  if (mfaTokens.size >= MFA_TOKENS_MAX) return { code: 'mfa-token-limit-reached' };
  return nameRefusal(name);
}

function nameRefusal(name: string): Refusal | null {
  const length = codePointCount(name);
  return length < 1 || length > MFA_TOKEN_NAME_LENGTH_MAX ? { code: 'mfa-token-name-length' } : null;
}

function decideToken(
  token: MfaToken,
  command: Exclude<MfaCommand, { type: 'BeginTotpEnrolment' | 'BeginPasskeyEnrolment' }>,
): Decision<MfaEvent> {
  const token_id = token.id;
  switch (command.type) {
    case 'ActivateTotp':
      if (token.kind !== 'totp') return refuse({ code: 'mfa-token-not-found' });
      if (token.status === 'active') return refuse({ code: 'mfa-token-active' });
      if (isEnrolmentOver(token, command.now)) return refuse({ code: 'mfa-enrolment-over' });
      return accept<MfaEvent>({ type: 'TotpActivated', data: { token_id, step: command.step } });
    case 'ActivatePasskey': {
      if (token.kind !== 'passkey') return refuse({ code: 'mfa-token-not-found' });
      if (token.status === 'active') return refuse({ code: 'mfa-token-active' });
      if (isEnrolmentOver(token, command.now)) return refuse({ code: 'mfa-enrolment-over' });
      const data = { token_id, passkey_ref: command.passkeyRef, sign_count: command.signCount };
      return accept<MfaEvent>({ type: 'PasskeyActivated', data });
    }
    case 'RenameMfaToken': {
      const refusal = nameRefusal(command.name);
      if (refusal !== null) return refuse(refusal);
      if (command.name === token.name) return accept<MfaEvent>();
      return accept<MfaEvent>({ type: 'MfaTokenRenamed', data: { token_id, name: command.name } });
    }
    case 'DeleteMfaToken':
      return accept<MfaEvent>({ type: 'MfaTokenDeleted', data: { token_id, removed_ref: vaultRefOf(token) } });
  }
}

export function decideSecondFactor(account: Account, command: SecondFactorCommand): Decision<MfaEvent> {
  if (account.status !== 'open' && account.status !== 'closed') return refuse({ code: 'account-not-found' });
  const token = account.mfaTokens.get(command.id);
  if (token?.status !== 'active') return refuse({ code: 'mfa-token-not-found' });
  const token_id = token.id;
  switch (command.type) {
    case 'UseTotpCode':
      if (token.kind !== 'totp') return refuse({ code: 'mfa-token-not-found' });
      if (command.step <= token.lastStep) return refuse({ code: 'mfa-code-used' });
      return accept<MfaEvent>({ type: 'TotpCodeUsed', data: { token_id, step: command.step } });
    case 'UsePasskey': {
      if (token.kind !== 'passkey') return refuse({ code: 'mfa-token-not-found' });
      const { signCount: sign_count } = command;
      const { signCount: recorded_sign_count, regressedAt } = token;
      if (isAbove(sign_count, recorded_sign_count))
        return accept<MfaEvent>({ type: 'PasskeyUsed', data: { token_id, sign_count } });
      if (regressedAt !== null) return refuse({ code: 'mfa-passkey-counter-regressed' });
      const data = { token_id, sign_count, recorded_sign_count };
      return accept<MfaEvent>({ type: 'PasskeyCounterRegressed', data });
    }
  }
}

/** An authenticator without a counter always says 0 (Web Authentication, section 6.1.1). */
function isAbove(signCount: number, recorded: number): boolean {
  return signCount > recorded || (signCount === 0 && recorded === 0);
}

/** Removes every MFA token. Does nothing for an account without one. */
export function decideMfaReset(account: Account): Decision<MfaEvent> {
  if (account.status !== 'open' && account.status !== 'closed') return refuse({ code: 'account-not-found' });
  const tokens = [...account.mfaTokens.values()];
  if (tokens.length === 0) return accept<MfaEvent>();
  const removed_refs = tokens.map(vaultRefOf).filter((ref) => ref !== null);
  return accept<MfaEvent>({ type: 'MfaReset', data: { token_ids: tokens.map(({ id }) => id), removed_refs } });
}
