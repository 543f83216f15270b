/** Folds the events of an account's trust rules. */
import { selectedRepositories } from '../../access-token/repository-selection.ts';
import { byId, list, merged, number, object, parsed, text, time, word } from '../../kernel/codec.ts';
import type { Grant } from '../../kernel/grants.ts';
import { type RepositoryId, type Timestamp, type TrustRuleId, uuid } from '../../kernel/ids.ts';
import { vaultRef } from '../../kernel/vault-ref.ts';
import type { Facet } from '../facet.ts';
import { type TrustRuleChanged, type TrustRuleCreated, type TrustRuleEvent, trustRuleEventKinds } from './events.ts';
import type { AccountTrustRules, TrustRule } from './state.ts';

function evolveTrustRules(state: AccountTrustRules, event: TrustRuleEvent, at: Timestamp): AccountTrustRules {
  const id = uuid<TrustRuleId>(event.data.rule_id);
  const trustRules = new Map(state.trustRules);
  if (event.type === 'TrustRuleCreated') {
    trustRules.set(id, createdRule(id, event, at));
    return { trustRules };
  }
  const rule = trustRules.get(id);
  if (rule === undefined) throw new TypeError(`${event.type} of a trust rule that is not there`);
  if (event.type === 'TrustRuleDeleted') trustRules.delete(id);
  else trustRules.set(id, changedRule(rule, event));
  return { trustRules };
}

function createdRule(id: TrustRuleId, { data }: TrustRuleCreated, createdAt: Timestamp): TrustRule {
  return {
    id,
    name: data.name,
    issuer: data.issuer,
    conditionsRef: vaultRef(data.conditions_ref),
    grants: data.grants,
    repositories: { scope: data.scope, repositoryIds: data.repository_ids.map((one) => uuid<RepositoryId>(one)) },
    epoch: 0,
    createdAt,
  };
}

function changedRule(rule: TrustRule, { data }: TrustRuleChanged): TrustRule {
  const { scope, repositoryIds } = rule.repositories;
  return {
    ...rule,
    name: data.name ?? rule.name,
    issuer: data.issuer ?? rule.issuer,
    conditionsRef: data.conditions_ref === undefined ? rule.conditionsRef : vaultRef(data.conditions_ref),
    grants: data.grants ?? rule.grants,
    repositories: {
      scope: data.scope ?? scope,
      repositoryIds: data.repository_ids?.map((one) => uuid<RepositoryId>(one)) ?? repositoryIds,
    },
    epoch: rule.epoch + 1,
  };
}

const trustRule = merged(
  object<Omit<TrustRule, 'repositories'>>({
    id: parsed(uuid<TrustRuleId>),
    name: text,
    issuer: text,
    conditionsRef: parsed(vaultRef),
    grants: list(word<Grant>()),
    epoch: number,
    createdAt: time,
  }),
  selectedRepositories,
);

export const accountTrustRules: Facet<AccountTrustRules, TrustRuleEvent> = {
  kinds: trustRuleEventKinds,
  initial: { trustRules: new Map<TrustRuleId, TrustRule>() },
  evolve: evolveTrustRules,
  snapshot: object<AccountTrustRules>({ trustRules: byId(trustRule) }),
  sizeBytes({ trustRules }) {
    let total = 0;
    for (const { issuer, repositories } of trustRules.values()) {
      total += 1_000 + 2 * issuer.length + 60 * repositories.repositoryIds.length;
    }
    return total;
  },
};
