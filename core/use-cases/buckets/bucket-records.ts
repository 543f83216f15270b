/**
 * The vault records of storage buckets: where a bucket is, and how it lets this service in.
 *
 * Invariants: each bucket has records of its own, so removing those of one never removes one that another uses. The
 * secret key leaves this file only in a `BucketSettings`.
 */
import type { BucketRefs } from '../../account/buckets/commands.ts';
import type { BucketAccess, BucketPlace, BucketSettings } from '../../account/buckets/settings.ts';
import type { StorageBucket } from '../../account/buckets/state.ts';
import type { AccountId, Uuid } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { Ids } from '../../ports/clock.ts';
import type { Vault } from '../../ports/vault.ts';

export interface RecordsContext {
  readonly vault: Vault;
  readonly ids: Ids;
}

/** Equal values share a vault record, so the id makes each record's value a different one. */
type Identified<Value> = Value & { readonly id: Uuid };

export function storePlace({ vault, ids }: RecordsContext, account: AccountId, place: BucketPlace): Promise<VaultRef> {
  const { bucketName, keyPrefix, endpointUrl } = place;
  return vault.put(account, 'bucket-place', canonicalJson({ id: ids.next(), bucketName, keyPrefix, endpointUrl }));
}

export function storeAccess(
  { vault, ids }: RecordsContext,
  account: AccountId,
  access: BucketAccess,
): Promise<VaultRef> {
  return vault.put(account, 'bucket-access', canonicalJson({ id: ids.next(), ...access }));
}

/** Returns null if a record is gone: the settings changed after the state was read. */
export async function readSettings(
  vault: Vault,
  account: AccountId,
  { provider, placeRef, accessRef }: Pick<StorageBucket, 'provider' | keyof BucketRefs>,
): Promise<BucketSettings | null> {
  const [place, access] = await Promise.all([
    vault.get(account, 'bucket-place', placeRef),
    vault.get(account, 'bucket-access', accessRef),
  ]);
  if (place === null || access === null) return null;
  return { provider, place: parsePlace(place), access: parseAccess(access) };
}

export async function removeRecords(vault: Vault, account: AccountId, refs: readonly VaultRef[]): Promise<void> {
  await Promise.all(refs.map((ref) => vault.delete(account, ref)));
}

/** The casts are sound because only this file writes such records, and the vault notices one that was changed. */
function parsePlace(record: string): BucketPlace {
  const { bucketName, keyPrefix, endpointUrl } = JSON.parse(record) as Identified<BucketPlace>;
  return { bucketName, keyPrefix, endpointUrl };
}

function parseAccess(record: string): BucketAccess {
  const { id: _id, ...access } = JSON.parse(record) as Identified<BucketAccess>;
  return access;
}
