/** Folds the events of an account's MFA tokens. */
import { type MfaTokenId, type Timestamp, timestamp, uuid } from '../../kernel/ids.ts';
import type { JsonObject } from '../../kernel/json.ts';
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

/** The stored form, which only this file writes and reads. A change of it raises the version of the snapshot. */
type MfaSnapshot = { readonly mfaTokens: readonly StoredToken[]; readonly mfaChanges: number };

type StoredToken =
  | (Stored & { readonly kind: 'totp'; readonly status: 'pending'; readonly seedRef: string })
  | (Stored & StoredActive & { readonly kind: 'totp'; readonly seedRef: string; readonly lastStep: number })
  | (Stored & { readonly kind: 'passkey'; readonly status: 'pending' })
  | (Stored &
      StoredActive & {
        readonly kind: 'passkey';
        readonly passkeyRef: string;
        readonly signCount: number;
        readonly regressedAt: string | null;
      });
type Stored = { readonly id: string; readonly name: string; readonly createdAt: string };
type StoredActive = { readonly status: 'active'; readonly activatedAt: string; readonly lastUsedAt: string | null };

/** The cast is sound because only `writeSnapshot` below makes these members. */
function parseSnapshot(snapshot: JsonObject): MfaSnapshot {
  return snapshot as MfaSnapshot;
}

function readToken(stored: StoredToken): MfaToken {
  const named = { id: uuid<MfaTokenId>(stored.id), name: stored.name, createdAt: timestamp(stored.createdAt) };
  if (stored.status === 'pending') {
    const { kind, status } = stored;
    return kind === 'passkey'
      ? { ...named, kind, status }
      : { ...named, kind, status, seedRef: vaultRef(stored.seedRef) };
  }
  const { status, activatedAt, lastUsedAt } = stored;
  const active = { status, activatedAt: timestamp(activatedAt), lastUsedAt: timeOrNull(lastUsedAt) };
  if (stored.kind === 'totp') {
    const { kind, seedRef, lastStep } = stored;
    return { ...named, ...active, kind, seedRef: vaultRef(seedRef), lastStep };
  }
  const { kind, passkeyRef, signCount, regressedAt } = stored;
  return {
    ...named,
    ...active,
    kind,
    passkeyRef: vaultRef(passkeyRef),
    signCount,
    regressedAt: timeOrNull(regressedAt),
  };
}

function timeOrNull(text: string | null): Timestamp | null {
  return text === null ? null : timestamp(text);
}

export const accountMfa: Facet<AccountMfa, MfaEvent> = {
  kinds: mfaEventKinds,
  initial: { mfaTokens: new Map<MfaTokenId, MfaToken>(), mfaChanges: 0 },
  evolve: evolveMfa,
  writeSnapshot({ mfaTokens, mfaChanges }) {
    const stored = [...mfaTokens.values()].map((token) => ({ ...token }));
    return { mfaTokens: stored, mfaChanges } satisfies MfaSnapshot;
  },
  readSnapshot(snapshot) {
    const { mfaTokens, mfaChanges } = parseSnapshot(snapshot);
    return { mfaTokens: new Map(mfaTokens.map(readToken).map((token) => [token.id, token])), mfaChanges };
  },
  sizeBytes: ({ mfaTokens }) => 1_000 * mfaTokens.size,
};
