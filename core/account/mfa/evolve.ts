/** Folds the events of an account's MFA tokens. */
import { byId, nullable, number, object, parsed, tagged, text, time } from '../../kernel/codec.ts';
import { type MfaTokenId, type Timestamp, uuid } from '../../kernel/ids.ts';
import { vaultRef } from '../../kernel/vault-ref.ts';
import type { Facet } from '../facet.ts';
import { type MfaEvent, mfaEventKinds } from './events.ts';
import type { AccountMfa, ActivePasskey, ActiveTotp, MfaToken, PendingPasskey, PendingTotp } from './state.ts';

const CHANGES_WHO_ENTERS: ReadonlySet<MfaEvent['type']> = new Set([
  'TotpActivated',
  'PasskeyActivated',
  'MfaTokenDeleted',
  'MfaReset',
]);

function evolveMfa(state: AccountMfa, event: MfaEvent, at: Timestamp): AccountMfa {
  const mfaChanges = CHANGES_WHO_ENTERS.has(event.type) ? state.mfaChanges + 1 : state.mfaChanges;
  if (event.type === 'MfaReset') return { mfaTokens: new Map(), mfaChanges };
  const id = uuid<MfaTokenId>(event.data.token_id);
  const mfaTokens = new Map(state.mfaTokens);
  if (event.type === 'MfaTokenDeleted') {
    if (!mfaTokens.delete(id)) throw misplaced(event);
  } else {
    mfaTokens.set(id, evolvedToken(mfaTokens.get(id), event, id, at));
  }
  return { mfaTokens, mfaChanges };
}

function evolvedToken(
  token: MfaToken | undefined,
  event: Exclude<MfaEvent, { type: 'MfaReset' | 'MfaTokenDeleted' }>,
  id: MfaTokenId,
  at: Timestamp,
): MfaToken {
  switch (event.type) {
    case 'TotpEnrolmentBegun': {
      const { name, seed_ref } = event.data;
      return { kind: 'totp', status: 'pending', id, name, seedRef: vaultRef(seed_ref), createdAt: at };
    }
    case 'TotpActivated': {
      const pending = totp(token, event);
      return { ...pending, status: 'active', lastStep: event.data.step, activatedAt: at, lastUsedAt: null };
    }
    case 'TotpCodeUsed': {
      const active = totp(token, event);
      if (active.status !== 'active') throw misplaced(event);
      return { ...active, lastStep: event.data.step, lastUsedAt: at };
    }
    case 'PasskeyEnrolmentBegun':
      return { kind: 'passkey', status: 'pending', id, name: event.data.name, createdAt: at };
    case 'PasskeyActivated': {
      const pending = passkey(token, event);
      const { passkey_ref, sign_count: signCount } = event.data;
      const times = { activatedAt: at, lastUsedAt: null, regressedAt: null };
      return { ...pending, status: 'active', passkeyRef: vaultRef(passkey_ref), signCount, ...times };
    }
    case 'PasskeyUsed':
      return { ...activePasskey(token, event), signCount: event.data.sign_count, lastUsedAt: at };
    case 'PasskeyCounterRegressed':
      // The recorded counter stays: the device whose counter is above it goes on to work.
      return { ...activePasskey(token, event), regressedAt: at };
    case 'MfaTokenRenamed':
      if (token === undefined) throw misplaced(event);
      return { ...token, name: event.data.name };
  }
}

function totp(token: MfaToken | undefined, event: MfaEvent): PendingTotp | ActiveTotp {
  if (token?.kind !== 'totp') throw misplaced(event);
  return token;
}

function passkey(token: MfaToken | undefined, event: MfaEvent): PendingPasskey | ActivePasskey {
  if (token?.kind !== 'passkey') throw misplaced(event);
  return token;
}

function activePasskey(token: MfaToken | undefined, event: MfaEvent): ActivePasskey {
  const active = passkey(token, event);
  if (active.status !== 'active') throw misplaced(event);
  return active;
}

function misplaced(event: MfaEvent): TypeError {
  return new TypeError(`${event.type} of an MFA token that is not there, or not in that status`);
}

const enrolled = { id: parsed(uuid<MfaTokenId>), name: text, createdAt: time };
const activated = { activatedAt: time, lastUsedAt: nullable(time) };
const passkeyMembers = { passkeyRef: parsed(vaultRef), signCount: number, regressedAt: nullable(time) };

const mfaToken = tagged('kind', {
  totp: tagged('status', {
    pending: object({ ...enrolled, seedRef: parsed(vaultRef) }),
    active: object({ ...enrolled, ...activated, seedRef: parsed(vaultRef), lastStep: number }),
  }),
  passkey: tagged('status', {
    pending: object(enrolled),
    active: object({ ...enrolled, ...activated, ...passkeyMembers }),
  }),
});

export const accountMfa: Facet<AccountMfa, MfaEvent> = {
  kinds: mfaEventKinds,
  initial: { mfaTokens: new Map<MfaTokenId, MfaToken>(), mfaChanges: 0 },
  evolve: evolveMfa,
  snapshot: object<AccountMfa>({ mfaTokens: byId(mfaToken), mfaChanges: number }),
  sizeBytes: ({ mfaTokens }) => 1_000 * mfaTokens.size,
};
