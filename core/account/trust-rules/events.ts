/**
 * Events of an account's trust rules, on `account-<id>`.
 *
 * Invariants: subject and claims may name persons, so they stand in the vault. A changed or deleted rule names the
 * vault record that is removed after the event.
 */
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../../kernel/decider.ts';
import type { Grant, Scope } from '../../kernel/grants.ts';

export type TrustRuleCreated = DomainEvent<
  'TrustRuleCreated',
  {
    readonly rule_id: string;
    readonly name: string;
    readonly issuer: string;
    /** A vault reference (docs/architecture.md, invariant 5). */
    readonly conditions_ref: string;
    readonly scope: Scope;
    readonly grants: readonly Grant[];
    readonly repository_ids: readonly string[];
  }
>;

/** Holds only the settings that changed. Ends every token that the rule gave out. */
export type TrustRuleChanged = DomainEvent<
  'TrustRuleChanged',
  {
    readonly rule_id: string;
    readonly name?: string;
    readonly issuer?: string;
    readonly conditions_ref?: string;
    readonly scope?: Scope;
    readonly grants?: readonly Grant[];
    readonly repository_ids?: readonly string[];
    /** The conditions before, if they changed. */
    readonly removed_ref: string | null;
  }
>;

/** Ends every token that the rule gave out. */
export type TrustRuleDeleted = DomainEvent<
  'TrustRuleDeleted',
  { readonly rule_id: string; readonly removed_ref: string }
>;

export type TrustRuleEvent = TrustRuleCreated | TrustRuleChanged | TrustRuleDeleted;

export const trustRuleEventKinds: EventKinds<TrustRuleEvent> = {
  TrustRuleCreated: RECORD_V1,
  TrustRuleChanged: RECORD_V1,
  TrustRuleDeleted: RECORD_V1,
};
