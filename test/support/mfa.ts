/** What the use cases of second factors need beside a node, and people who own second factors. */
import { createOneTimeCodes } from '../../adapters/otp/one-time-codes.ts';
import { createWebauthnPasskeys } from '../../adapters/webauthn/passkeys.ts';
import { accounts } from '../../core/account/evolve.ts';
import { sessionEpochOf } from '../../core/account/state.ts';
import type { AccountId, MfaTokenId } from '../../core/kernel/ids.ts';
import type { OneTimeCodes } from '../../core/ports/one-time-codes.ts';
import type { PasskeyChallenges } from '../../core/ports/passkey-challenges.ts';
import type { Passkeys } from '../../core/ports/passkeys.ts';
import type { MfaOrigin } from '../../core/use-cases/signing-in/mfa-tokens.ts';
import {
  activatePasskey,
  beginPasskeyEnrolment,
  type PasskeyContext,
  promptForNewPasskey,
} from '../../core/use-cases/signing-in/passkeys.ts';
import { activateTotp, beginTotpEnrolment, type TotpContext } from '../../core/use-cases/signing-in/totp.ts';
import { accepted } from './accounts.ts';
import { createMemoryPasskeyChallenges } from './memory/passkey-challenges.ts';
import { CAUSE, type TestNode } from './node.ts';
import { createSoftwareAuthenticator, type SoftwareAuthenticator } from './software-authenticator.ts';
import { codeAt } from './totp-app.ts';

export const ORIGIN = 'http://localhost:8080';

export interface MfaParts {
  readonly oneTimeCodes: OneTimeCodes;
  readonly passkeys: Passkeys;
  readonly challenges: PasskeyChallenges;
}

export type MfaNode = TestNode & MfaParts;

/** Nodes of one service share their challenges. */
export function mfaParts(challenges: PasskeyChallenges = createMemoryPasskeyChallenges()): MfaParts {
  return {
    oneTimeCodes: createOneTimeCodes({ issuer: 'Strata' }),
    passkeys: createWebauthnPasskeys({ webUrl: ORIGIN, name: 'Strata' }),
    challenges,
  };
}

export function owner(account: AccountId): MfaOrigin {
  return { account, cause: { ...CAUSE, actor: { kind: 'user', id: account } } };
}

/** Enrols an authenticator app, and moves the clock so that its next code works. */
export async function enrolTotp(
  node: TotpContext & { readonly clock: { advance(ms: number): void } },
  account: AccountId,
  name = 'Phone',
): Promise<{ readonly id: MfaTokenId; readonly seed: string }> {
  const { id, seed } = accepted(await beginTotpEnrolment(node, owner(account), name));
  accepted(await activateTotp(node, owner(account), id, codeAt(seed, node.clock.now())));
  node.clock.advance(30_000);
  return { id, seed };
}

export async function enrolPasskey(
  node: PasskeyContext,
  account: AccountId,
  name = 'Key',
  authenticator: SoftwareAuthenticator = createSoftwareAuthenticator({ origin: ORIGIN }),
): Promise<{ readonly id: MfaTokenId; readonly authenticator: SoftwareAuthenticator }> {
  const { id } = accepted(await beginPasskeyEnrolment(node, owner(account), name));
  const { options } = accepted(await promptForNewPasskey(node, account, id));
  accepted(await activatePasskey(node, owner(account), id, authenticator.create(options)));
  return { id, authenticator };
}

/** Returns the account's session epoch. */
export async function epochOf({ entities }: Pick<TestNode, 'entities'>, account: AccountId): Promise<number> {
  const { state } = await entities.reload(accounts, account);
  if (state.status !== 'open' && state.status !== 'closed') throw new Error(`The account is ${state.status}`);
  return sessionEpochOf(state);
}
