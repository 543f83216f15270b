/** The state that the events of MFA tokens fold into. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { AccountEvent } from '../../../../core/account/events.ts';
import { accounts } from '../../../../core/account/evolve.ts';
import { hasActiveMfaToken, pendingPasskey } from '../../../../core/account/mfa/state.ts';
import { plusMs } from '../../../../core/kernel/ids.ts';
import {
  accountCreated,
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

function open(...history: readonly AccountEvent[]) {
  const state = given(accounts, accountCreated, ...history);
  assert.ok(state.status === 'open');
  return state;
}

const at = (seconds: number) => plusMs(FIRST_AT, seconds * 1_000);
const id = mfaTokenId(1);

describe("The state of an account's MFA tokens", () => {
  test('follows a TOTP token from its enrolment to its last code', () => {
    const begun = { kind: 'totp', id, name: 'app 1', seedRef, createdAt: at(1) };
    assert.deepEqual(open(totpBegun(1)).mfaTokens.get(id), { ...begun, status: 'pending' });
    const used: AccountEvent = { type: 'TotpCodeUsed', data: { token_id: id, step: 11 } };
    const renamed: AccountEvent = { type: 'MfaTokenRenamed', data: { token_id: id, name: 'new' } };
    assert.deepEqual(open(totpBegun(1), totpActivated(1, 10), used, renamed).mfaTokens.get(id), {
      ...{ ...begun, name: 'new', status: 'active', lastStep: 11, activatedAt: at(2), lastUsedAt: at(3) },
    });
  });

  test('follows a passkey, and keeps the recorded counter after one that went back', () => {
    const begun = { kind: 'passkey', id, name: 'key 1', createdAt: at(1) };
    assert.deepEqual(open(passkeyBegun(1)).mfaTokens.get(id), { ...begun, status: 'pending' });
    const used: AccountEvent = { type: 'PasskeyUsed', data: { token_id: id, sign_count: 9 } };
    const regressed: AccountEvent = {
      type: 'PasskeyCounterRegressed',
      data: { token_id: id, sign_count: 8, recorded_sign_count: 9 },
    };
    const token = open(passkeyBegun(1), passkeyActivated(1, 7), used, regressed).mfaTokens.get(id);
    const times = { activatedAt: at(2), lastUsedAt: at(3), regressedAt: at(4) };
    assert.deepEqual(token, { ...begun, ...times, status: 'active', passkeyRef, signCount: 9 });
  });

  test('asks for a second factor once a token is active, and until the last active one is gone', () => {
    assert.equal(hasActiveMfaToken(open(totpBegun(1), passkeyBegun(2))), false);
    const tokens = open(totpBegun(1), passkeyBegun(2)).mfaTokens.values();
    assert.equal(pendingPasskey(tokens, FIRST_AT)?.id, mfaTokenId(2));
    const active = [totpBegun(1), totpActivated(1, 10), passkeyBegun(2)];
    assert.equal(hasActiveMfaToken(open(...active)), true);
    assert.equal(hasActiveMfaToken(open(...active, mfaTokenDeleted(1, seedRef))), false);
    const reset: AccountEvent = { type: 'MfaReset', data: { token_ids: [id], removed_refs: [seedRef] } };
    assert.deepEqual(open(...active, reset).mfaTokens.size, 0);
  });

  test('counts the changes of who may enter, which end sessions, and no other event', () => {
    const changes = (...history: readonly AccountEvent[]) => open(...history).mfaChanges;
    const enrolled = [totpBegun(1), passkeyBegun(2)];
    assert.equal(changes(...enrolled), 0);
    const active = [...enrolled, totpActivated(1, 10), passkeyActivated(2, 7)];
    assert.equal(changes(...active), 2);
    const used: AccountEvent[] = [
      { type: 'TotpCodeUsed', data: { token_id: id, step: 11 } },
      { type: 'PasskeyUsed', data: { token_id: mfaTokenId(2), sign_count: 9 } },
      { type: 'PasskeyCounterRegressed', data: { token_id: mfaTokenId(2), sign_count: 9, recorded_sign_count: 9 } },
      { type: 'MfaTokenRenamed', data: { token_id: id, name: 'new' } },
    ];
    assert.equal(changes(...active, ...used), 2);
    assert.equal(changes(...active, mfaTokenDeleted(1, seedRef)), 3);
    const reset: AccountEvent = { type: 'MfaReset', data: { token_ids: [id], removed_refs: [seedRef] } };
    assert.equal(changes(...active, reset), 3);
  });

  test('refuses to fold an event of a token that is not there, or not in that status', () => {
    for (const event of [
      totpActivated(1, 10),
      passkeyActivated(1, 7),
      mfaTokenDeleted(1, null),
      { type: 'MfaTokenRenamed', data: { token_id: id, name: 'new' } },
      { type: 'TotpCodeUsed', data: { token_id: id, step: 11 } },
    ] satisfies AccountEvent[]) {
      assert.throws(() => open(event), TypeError, event.type);
    }
    assert.throws(() => open(totpBegun(1), { type: 'TotpCodeUsed', data: { token_id: id, step: 11 } }), TypeError);
    assert.throws(() => open(totpBegun(1), passkeyActivated(1, 7)), TypeError);
  });
});
