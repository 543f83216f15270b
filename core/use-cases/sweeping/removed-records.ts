/**
 * The vault records that an event of an account removes. The sweep of the vault removes them if the event's writer did
 * not.
 *
 * Invariants: each event here names the records itself, and no later event names one of them again: an MFA token, a
 * storage bucket and each version of a trust rule's conditions have records of their own.
 */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import { type VaultRef, vaultRef } from '../../kernel/vault-ref.ts';

/** Returns no record for an event that removes none. */
export function removedRecords(recorded: RecordedEvent): readonly VaultRef[] {
  const { data } = readEvent<AccountEvent>(accounts.kinds, recorded);
  if ('removed_refs' in data) return data.removed_refs.map(vaultRef);
  return 'removed_ref' in data && data.removed_ref !== null ? [vaultRef(data.removed_ref)] : [];
}
