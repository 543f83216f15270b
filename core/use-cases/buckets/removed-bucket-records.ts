/** The vault records that an event of storage buckets supersedes. The sweep of the vault removes them if its writer did not. */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import { type VaultRef, vaultRef } from '../../kernel/vault-ref.ts';

/** Returns no record for an event that removes none. Each bucket has records of its own, so none is still in use. */
export function removedBucketRecords(recorded: RecordedEvent): readonly VaultRef[] {
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type === 'StorageBucketDeleted') return event.data.removed_refs.map(vaultRef);
  if (event.type !== 'StorageBucketPlaceChanged' && event.type !== 'StorageBucketAccessChanged') return [];
  return [vaultRef(event.data.removed_ref)];
}
