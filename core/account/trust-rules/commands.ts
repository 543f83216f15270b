/** The commands of an account's trust rules. */
import type { RepositorySelection } from '../../access-token/repository-selection.ts';
import type { Grant } from '../../kernel/grants.ts';
import type { TrustRuleId } from '../../kernel/ids.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';

export interface TrustRuleSettings extends RepositorySelection {
  readonly name: string;
  /** A URL that the rules of outgoing requests allow. */
  readonly issuer: string;
  /** A vault reference of the subject and the claims that the rule asks for. */
  readonly conditionsRef: VaultRef;
  readonly grants: readonly Grant[];
}

/** What the caller may do that makes or changes a rule: a rule can never carry more. */
export interface RuleMaker {
  readonly grants: readonly Grant[];
  readonly selection: RepositorySelection;
}

export type TrustRuleCommand =
  | {
      readonly type: 'CreateTrustRule';
      readonly id: TrustRuleId;
      readonly settings: TrustRuleSettings;
      readonly maker: RuleMaker;
    }
  | {
      readonly type: 'ChangeTrustRule';
      readonly id: TrustRuleId;
      readonly changes: Partial<TrustRuleSettings>;
      readonly maker: RuleMaker;
    }
  | { readonly type: 'DeleteTrustRule'; readonly id: TrustRuleId };
