/** The vault record that an event of a trust rule supersedes. The sweep of the vault removes it if its writer did not. */
import type { AccountEvent } from '../../account/events.ts';
import { accounts } from '../../account/evolve.ts';
import { readEvent } from '../../kernel/decider.ts';
import type { RecordedEvent } from '../../kernel/envelope.ts';
import { type VaultRef, vaultRef } from '../../kernel/vault-ref.ts';

/** Returns null for an event that removes none. Each version of a rule's conditions has a record of its own. */
export function removedTrustConditions(recorded: RecordedEvent): VaultRef | null {
  const event = readEvent<AccountEvent>(accounts.kinds, recorded);
  if (event.type !== 'TrustRuleChanged' && event.type !== 'TrustRuleDeleted') return null;
  return event.data.removed_ref === null ? null : vaultRef(event.data.removed_ref);
}
