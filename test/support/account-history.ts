/** Events of an account, for histories that a test folds into a state. */
import type { AccountEvent } from '../../core/account/events.ts';
import type { RepositoryCreated } from '../../core/account/repositories/events.ts';
import type { WebhookCreated } from '../../core/account/webhooks/events.ts';
import {
  type MfaTokenId,
  type RepositoryId,
  type StorageBucketId,
  uuid,
  type WebhookId,
} from '../../core/kernel/ids.ts';
import { vaultRef } from '../../core/kernel/vault-ref.ts';

export const emailRef = vaultRef('e'.repeat(64));
export const passwordHashRef = vaultRef('a'.repeat(64));

export const accountCreated: AccountEvent = {
  type: 'AccountCreated',
  data: { username: 'ada', email_ref: emailRef, password_hash_ref: passwordHashRef, plan: 'FREE' },
};

export const accountClosed: AccountEvent = {
  type: 'AccountClosed',
  data: { erase_at: '2026-12-05T10:00:00.000Z' },
};

/** `digit` fills the reference to the new address. */
export function emailChanged(digit: string, previousClaim: string | null): AccountEvent {
  return { type: 'EmailChanged', data: { email_ref: digit.repeat(64), previous_claim: previousClaim } };
}

export const accountReopened: AccountEvent = { type: 'AccountReopened', data: {} };

export const accountErased: AccountEvent = { type: 'AccountErased', data: {} };

export function repositoryId(n: number): RepositoryId {
  return uuid(`0190f3e2-7c1a-7b4e-9a35-${String(n).padStart(12, '0')}`);
}

export function repositoryCreated(
  n: number,
  name: string,
  more: Partial<RepositoryCreated['data']> = {},
): RepositoryCreated {
  const data = { repository_id: repositoryId(n), name, description: null, default_branch: null };
  return { type: 'RepositoryCreated', data: { ...data, storage_bucket_id: null, ...more } };
}

export function repositoryDescribed(n: number, description: string | null): AccountEvent {
  return { type: 'RepositoryDescribed', data: { repository_id: repositoryId(n), description } };
}

export function repositoryRenamed(n: number, previousName: string, name: string): AccountEvent {
  return { type: 'RepositoryRenamed', data: { repository_id: repositoryId(n), name, previous_name: previousName } };
}

export function repositoryDeleted(n: number, name: string): AccountEvent {
  return { type: 'RepositoryDeleted', data: { repository_id: repositoryId(n), name } };
}

export function webhookId(n: number): WebhookId {
  return uuid(`0190f3e2-7c1a-7b4e-9a35-${String(1_000 + n).padStart(12, '0')}`);
}

export const webhookTarget = { urlRef: vaultRef('1'.repeat(64)), secretRef: vaultRef('2'.repeat(64)) };

export function webhookCreated(n: number, more: Partial<WebhookCreated['data']> = {}): WebhookCreated {
  const refs = { url_ref: webhookTarget.urlRef, secret_ref: webhookTarget.secretRef };
  const settings = { events: ['push'] as const, active: true, scope: 'ALL_REPO' as const, repository_ids: [] };
  return { type: 'WebhookCreated', data: { webhook_id: webhookId(n), ...refs, ...settings, ...more } };
}

export function webhookDeleted(n: number): AccountEvent {
  return { type: 'WebhookDeleted', data: { webhook_id: webhookId(n) } };
}

export function mfaTokenId(n: number): MfaTokenId {
  return uuid(`0190f3e2-7c1a-7b4e-9a35-${String(2_000 + n).padStart(12, '0')}`);
}

export const seedRef = vaultRef('5'.repeat(64));
export const passkeyRef = vaultRef('6'.repeat(64));

export function totpBegun(n: number): AccountEvent {
  return { type: 'TotpEnrolmentBegun', data: { token_id: mfaTokenId(n), name: `app ${n}`, seed_ref: seedRef } };
}

export function totpActivated(n: number, step: number): AccountEvent {
  return { type: 'TotpActivated', data: { token_id: mfaTokenId(n), step } };
}

export function passkeyBegun(n: number): AccountEvent {
  return { type: 'PasskeyEnrolmentBegun', data: { token_id: mfaTokenId(n), name: `key ${n}` } };
}

export function passkeyActivated(n: number, sign_count: number): AccountEvent {
  return { type: 'PasskeyActivated', data: { token_id: mfaTokenId(n), passkey_ref: passkeyRef, sign_count } };
}

export function mfaTokenDeleted(n: number, removed_ref: string | null): AccountEvent {
  return { type: 'MfaTokenDeleted', data: { token_id: mfaTokenId(n), removed_ref } };
}

export function bucketId(n: number): StorageBucketId {
  return uuid(`0190f3e2-7c1a-7b4e-9a35-${String(3_000 + n).padStart(12, '0')}`);
}

export const bucketRefs = { placeRef: vaultRef('7'.repeat(64)), accessRef: vaultRef('8'.repeat(64)) };

export function bucketCreated(n: number, name = `bucket ${n}`): AccountEvent {
  const refs = { place_ref: bucketRefs.placeRef, access_ref: bucketRefs.accessRef };
  const data = { bucket_id: bucketId(n), name, provider: 'S3', auth_mode: 'OIDC', ...refs } as const;
  return { type: 'StorageBucketCreated', data };
}

export function bucketVerified(n: number): AccountEvent {
  return { type: 'StorageBucketVerified', data: { bucket_id: bucketId(n) } };
}

export function defaultBucket(n: number | null): AccountEvent {
  return { type: 'DefaultBucketChanged', data: { bucket_id: n === null ? null : bucketId(n) } };
}
