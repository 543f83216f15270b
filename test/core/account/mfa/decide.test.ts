/** The decisions about an account's MFA tokens. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import type { MfaCommand, SecondFactorCommand } from '../../../../core/account/mfa/commands.ts';
import { decideMfa, decideMfaReset, decideSecondFactor } from '../../../../core/account/mfa/decide.ts';
import { MFA_ENROLMENT_SPAN_MS } from '../../../../core/account/mfa/state.ts';
import { plusMs } from '../../../../core/kernel/ids.ts';
import { MFA_TOKEN_NAME_LENGTH_MAX, MFA_TOKENS_MAX } from '../../../../core/kernel/limits.ts';
import {
  accountClosed,
  accountCreated,
  accountErased,
  mfaTokenDeleted,
  mfaTokenId,
  passkeyActivated,
  passkeyBegun,
  passkeyRef,
  seedRef,
  totpActivated,
  totpBegun,
} from '../../../support/account-history.ts';
import { FIRST_AT, given } from '../../../support/fold.ts';

type Decided = ReturnType<typeof decideMfa>;

/** Returns the events, or the code of the refusal. */
function shown(decision: Decided) {
  return 'refused' in decision ? decision.refused.code : decision.events;
}

function decide(history: readonly AccountEvent[], command: MfaCommand) {
  return shown(decideMfa(given(accounts, ...history), command));
}

function present(history: readonly AccountEvent[], command: SecondFactorCommand) {
  return shown(decideSecondFactor(given(accounts, ...history), command));
}

const beginTotp = (n: number, name = `app ${n}`): MfaCommand => ({
  ...{ type: 'BeginTotpEnrolment', id: mfaTokenId(n), name, seedRef },
});
const beginPasskey = (n: number, now = FIRST_AT): MfaCommand => ({
  ...{ type: 'BeginPasskeyEnrolment', id: mfaTokenId(n), name: `key ${n}`, now },
});
const activateTotp = (n: number, now = FIRST_AT): MfaCommand => ({
  ...{ type: 'ActivateTotp', id: mfaTokenId(n), step: 10, now },
});
const activatePasskey = (n: number, now = FIRST_AT): MfaCommand => ({
  ...{ type: 'ActivatePasskey', id: mfaTokenId(n), passkeyRef, signCount: 3, now },
});
const useCode = (n: number, step: number): SecondFactorCommand => ({ type: 'UseTotpCode', id: mfaTokenId(n), step });
const usePasskey = (n: number, signCount: number): SecondFactorCommand => ({
  ...{ type: 'UsePasskey', id: mfaTokenId(n), signCount },
});

describe("An account's MFA tokens", () => {
  test('are enrolled as pending, and activated by a code or a passkey', () => {
    assert.deepEqual(decide([accountCreated], beginTotp(1)), [totpBegun(1)]);
    assert.deepEqual(decide([accountCreated, totpBegun(1)], activateTotp(1)), [totpActivated(1, 10)]);
    assert.deepEqual(decide([accountCreated], beginPasskey(1)), [passkeyBegun(1)]);
    assert.deepEqual(decide([accountCreated, passkeyBegun(1)], activatePasskey(1)), [passkeyActivated(1, 3)]);
  });

  test('are activated once, and only as what they are', () => {
    const both = [accountCreated, totpBegun(1), passkeyBegun(2)];
    const active = [...both, totpActivated(1, 10), passkeyActivated(2, 3)];
    assert.equal(decide(active, activateTotp(1)), 'mfa-token-active');
    assert.equal(decide(active, activatePasskey(2)), 'mfa-token-active');
    assert.equal(decide(both, activateTotp(2)), 'mfa-token-not-found');
    assert.equal(decide(both, activatePasskey(1)), 'mfa-token-not-found');
    assert.equal(decide(both, activateTotp(3)), 'mfa-token-not-found');
  });

  // The attack: who finds a signed-in browser activates what its person began, with a device of their own.
  test('are activated within an hour of their enrolment, or never', () => {
    // `given` begins the token a second after the account.
    const end = plusMs(FIRST_AT, 1_000 + MFA_ENROLMENT_SPAN_MS);
    for (const [begun, activate] of [
      [totpBegun(1), activateTotp],
      [passkeyBegun(1), activatePasskey],
    ] as const) {
      assert.equal(typeof decide([accountCreated, begun], activate(1, plusMs(end, -1))), 'object');
      assert.equal(decide([accountCreated, begun], activate(1, end)), 'mfa-enrolment-over');
    }
  });

  test('may have a new pending passkey once the time of the one before is over', () => {
    const end = plusMs(FIRST_AT, 1_000 + MFA_ENROLMENT_SPAN_MS);
    const pending = [accountCreated, passkeyBegun(1)];
    assert.equal(decide(pending, beginPasskey(2, plusMs(end, -1))), 'mfa-passkey-pending');
    assert.equal(typeof decide(pending, beginPasskey(2, end)), 'object');
  });

  // The attack: a sixth token.
  test('are as many as the limit allows, pending ones included, and no more', () => {
    const many = (count: number) => [accountCreated, ...Array.from({ length: count }, (_, n) => totpBegun(n))];
    for (const begin of [beginTotp(9), beginPasskey(9)]) {
      assert.equal(typeof decide(many(MFA_TOKENS_MAX - 1), begin), 'object');
      assert.equal(decide(many(MFA_TOKENS_MAX), begin), 'mfa-token-limit-reached');
      assert.equal(typeof decide([...many(MFA_TOKENS_MAX), mfaTokenDeleted(2, seedRef)], begin), 'object');
    }
  });

  // The attack: a second pending passkey.
  test('have at most one pending passkey', () => {
    const pending = [accountCreated, passkeyBegun(1)];
    assert.equal(decide(pending, beginPasskey(2)), 'mfa-passkey-pending');
    assert.equal(typeof decide(pending, beginTotp(2)), 'object');
    assert.equal(typeof decide([...pending, passkeyActivated(1, 3)], beginPasskey(2)), 'object');
    assert.equal(typeof decide([...pending, mfaTokenDeleted(1, null)], beginPasskey(2)), 'object');
  });

  test('have names of at least one character and at most the limit', () => {
    const longest = '🔑'.repeat(MFA_TOKEN_NAME_LENGTH_MAX);
    assert.equal(typeof decide([accountCreated], beginTotp(1, longest)), 'object');
    for (const name of ['', `${longest}a`]) {
      assert.equal(decide([accountCreated], beginTotp(1, name)), 'mfa-token-name-length');
      const passkey: MfaCommand = { type: 'BeginPasskeyEnrolment', id: mfaTokenId(1), name, now: FIRST_AT };
      assert.equal(decide([accountCreated], passkey), 'mfa-token-name-length');
      const rename: MfaCommand = { type: 'RenameMfaToken', id: mfaTokenId(1), name };
      assert.equal(decide([accountCreated, totpBegun(1)], rename), 'mfa-token-name-length');
    }
  });

  test('are renamed and deleted whatever their status, and name the vault record that a deletion removes', () => {
    const token_id = mfaTokenId(1);
    const rename = (name: string): MfaCommand => ({ type: 'RenameMfaToken', id: token_id, name });
    const remove: MfaCommand = { type: 'DeleteMfaToken', id: token_id };
    for (const [history, record] of [
      [[totpBegun(1)], seedRef],
      [[totpBegun(1), totpActivated(1, 10)], seedRef],
      [[passkeyBegun(1)], null],
      [[passkeyBegun(1), passkeyActivated(1, 3)], passkeyRef],
    ] as const) {
      const account = [accountCreated, ...history];
      assert.deepEqual(decide(account, rename('new')), [{ type: 'MfaTokenRenamed', data: { token_id, name: 'new' } }]);
      assert.deepEqual(decide(account, remove), [mfaTokenDeleted(1, record)]);
    }
    assert.deepEqual(decide([accountCreated, totpBegun(1)], rename('app 1')), []);
    assert.equal(decide([accountCreated], rename('new')), 'mfa-token-not-found');
    assert.equal(decide([accountCreated], remove), 'mfa-token-not-found');
  });

  test('need an open account', () => {
    const commands = [beginTotp(2), beginPasskey(2), activateTotp(1), { type: 'DeleteMfaToken', id: mfaTokenId(1) }];
    const one = [accountCreated, totpBegun(1)];
    for (const history of [[], [...one, accountClosed], [...one, accountErased]]) {
      for (const command of commands as MfaCommand[]) assert.equal(decide(history, command), 'account-not-found');
    }
  });

  test('are all removed by a reset, which does nothing where there is none', () => {
    const reset = (...history: readonly AccountEvent[]) => shown(decideMfaReset(given(accounts, ...history)));
    const tokens = [totpBegun(1), passkeyBegun(2), passkeyBegun(3), passkeyActivated(3, 1)];
    const token_ids = [1, 2, 3].map(mfaTokenId);
    const expected = [{ type: 'MfaReset', data: { token_ids, removed_refs: [seedRef, passkeyRef] } }];
    assert.deepEqual(reset(accountCreated, ...tokens), expected);
    assert.deepEqual(reset(accountCreated, ...tokens, accountClosed), expected);
    assert.deepEqual(reset(accountCreated), []);
    assert.equal(reset(), 'account-not-found');
    assert.equal(reset(accountCreated, ...tokens, accountErased), 'account-not-found');
  });
});

describe('A second factor', () => {
  const totp = [accountCreated, totpBegun(1), totpActivated(1, 10)];
  const passkey = [accountCreated, passkeyBegun(1), passkeyActivated(1, 5)];
  const token_id = mfaTokenId(1);

  // The attack: a code is used again, or an older one that was seen but not used.
  test('that is a code works if its step is after every step that was used', () => {
    assert.equal(present(totp, useCode(1, 9)), 'mfa-code-used');
    assert.equal(present(totp, useCode(1, 10)), 'mfa-code-used');
    assert.deepEqual(present(totp, useCode(1, 11)), [{ type: 'TotpCodeUsed', data: { token_id, step: 11 } }]);
    const used: AccountEvent = { type: 'TotpCodeUsed', data: { token_id, step: 12 } };
    assert.equal(present([...totp, used], useCode(1, 12)), 'mfa-code-used');
    assert.equal(present([...totp, used], useCode(1, 11)), 'mfa-code-used');
    assert.equal(typeof present([...totp, used], useCode(1, 13)), 'object');
  });

  // The attack: a copied authenticator, whose counter is not above that of the real one.
  test('that is a passkey works if its counter is above the recorded one; else the account records it once', () => {
    assert.deepEqual(present(passkey, usePasskey(1, 6)), [{ type: 'PasskeyUsed', data: { token_id, sign_count: 6 } }]);
    for (const sign_count of [5, 4, 0]) {
      const regressed: AccountEvent = {
        type: 'PasskeyCounterRegressed',
        data: { token_id, sign_count, recorded_sign_count: 5 },
      };
      assert.deepEqual(present(passkey, usePasskey(1, sign_count)), [regressed]);
      assert.equal(present([...passkey, regressed], usePasskey(1, sign_count)), 'mfa-passkey-counter-regressed');
      assert.equal(typeof present([...passkey, regressed], usePasskey(1, 6)), 'object');
    }
  });

  test('that is a passkey without a counter always says 0, and works', () => {
    const uncounted = [accountCreated, passkeyBegun(1), passkeyActivated(1, 0)];
    assert.deepEqual(present(uncounted, usePasskey(1, 0)), [
      { type: 'PasskeyUsed', data: { token_id, sign_count: 0 } },
    ]);
  });

  test('is an active token of the right kind, of an account that is open or closed', () => {
    assert.equal(present([accountCreated, totpBegun(1)], useCode(1, 11)), 'mfa-token-not-found');
    assert.equal(present([accountCreated, passkeyBegun(1)], usePasskey(1, 6)), 'mfa-token-not-found');
    assert.equal(present(totp, usePasskey(1, 6)), 'mfa-token-not-found');
    assert.equal(present(passkey, useCode(1, 11)), 'mfa-token-not-found');
    assert.equal(present([accountCreated], useCode(1, 11)), 'mfa-token-not-found');
    assert.equal(typeof present([...totp, accountClosed], useCode(1, 11)), 'object');
    assert.equal(present([...totp, accountErased], useCode(1, 11)), 'account-not-found');
    assert.equal(present([], useCode(1, 11)), 'account-not-found');
  });
});
