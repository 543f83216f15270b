/** Reads trust rules with the time of their last use. */
import type { AccountId, Timestamp, TrustRuleId } from '../../kernel/ids.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { LastUse } from '../../ports/last-use.ts';
import type { CountedRefusal, RefusedExchanges } from '../../ports/refused-exchanges.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Context } from '../../runtime/execute.ts';
import { type FoundTrustRule, findTrustRule, listTrustRules } from './trust-rules.ts';

export type TrustRulesContext = Context & {
  readonly vault: Vault;
  readonly lastUse: Pick<LastUse, 'lastUsedAt'>;
};

export interface TrustRuleWithLastUse extends FoundTrustRule {
  /** When an identity token was last exchanged by the rule, or a token of the rule was used; null if never. */
  readonly lastUsedAt: Timestamp | null;
}

export async function listRulesWithLastUse(
  context: TrustRulesContext,
  account: AccountId,
): Promise<readonly TrustRuleWithLastUse[]> {
  return withLastUse(context, await listTrustRules(context, account));
}

export async function readTrustRule(
  context: TrustRulesContext,
  account: AccountId,
  id: TrustRuleId,
): Promise<TrustRuleWithLastUse | { readonly refused: Refusal }> {
  const found = await findTrustRule(context, account, id);
  return 'refused' in found ? found : addRuleLastUse(context, found);
}

/** Adds the time of its last use to a rule that was just written. */
export async function addRuleLastUse(
  context: Pick<TrustRulesContext, 'lastUse'>,
  found: FoundTrustRule,
): Promise<TrustRuleWithLastUse> {
  const used = await context.lastUse.lastUsedAt([found.rule.id]);
  return { ...found, lastUsedAt: used.get(found.rule.id) ?? null };
}

/** Lists why exchanges were refused that the rule might have let in, the newest first, with what the rule asks for. */
export async function listRefusedExchanges(
  context: TrustRulesContext & { readonly refusedExchanges: RefusedExchanges },
  account: AccountId,
  id: TrustRuleId,
): Promise<(FoundTrustRule & { readonly refusals: readonly CountedRefusal[] }) | { readonly refused: Refusal }> {
  const found = await findTrustRule(context, account, id);
  return 'refused' in found ? found : { ...found, refusals: await context.refusedExchanges.list(account, id) };
}

async function withLastUse(
  { lastUse }: Pick<TrustRulesContext, 'lastUse'>,
  rules: readonly FoundTrustRule[],
): Promise<readonly TrustRuleWithLastUse[]> {
  const used = await lastUse.lastUsedAt(rules.map(({ rule }) => rule.id));
  return rules.map((found) => ({ ...found, lastUsedAt: used.get(found.rule.id) ?? null }));
}
