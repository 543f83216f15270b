/** The vault records that an event of MFA tokens supersedes. The sweep of the vault removes them if its writer did not. */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import { type VaultRef, vaultRef } from '../../kernel/vault-ref.ts';

/** Returns no record for an event that removes none. Each token has a record of its own, so none is still in use. */
export function removedMfaRecords(recorded: RecordedEvent): readonly VaultRef[] {
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type === 'MfaReset') return event.data.removed_refs.map(vaultRef);
  if (event.type !== 'MfaTokenDeleted' || event.data.removed_ref === null) return [];
  return [vaultRef(event.data.removed_ref)];
}
