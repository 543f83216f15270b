/** The state of an account's trust rules, folded from the account's stream. */
import type { RepositorySelection } from '../../access-token/repository-selection.ts';
import type { Grant } from '../../kernel/grants.ts';
import type { Timestamp, TrustRuleId } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';

/** Who may exchange an identity token for an access token, and what that access token may do. */
export interface TrustRule {
  readonly id: TrustRuleId;
  readonly name: string;
  readonly issuer: string;
  /** A vault reference of the subject and the claims that the rule asks for (conditions.ts). */
  readonly conditionsRef: VaultRef;
  readonly grants: readonly Grant[];
  readonly repositories: RepositorySelection;
  /** Counts the rule's changes. A token ends when its rule's epoch is not the one that it was made in. */
  readonly epoch: number;
  readonly createdAt: Timestamp;
}

export interface AccountTrustRules {
  /** In the order of their creation; at most `TRUST_RULES_MAX`. */
  readonly trustRules: ReadonlyMap<TrustRuleId, TrustRule>;
}
