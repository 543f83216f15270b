/** Folds the events of an account's trust rules. */
import type { Grant, Scope } from '../../kernel/grants.ts';
import { type RepositoryId, type Timestamp, type TrustRuleId, timestamp, uuid } from '../../kernel/ids.ts';
import type { JsonObject } from '../../kernel/json.ts';
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

/** The stored form, which only this file writes and reads. A change of it raises the version of the snapshot. */
type TrustRulesSnapshot = {
  readonly trustRules: readonly {
    readonly id: string;
    readonly name: string;
    readonly issuer: string;
    readonly conditionsRef: string;
    readonly grants: readonly Grant[];
    readonly scope: Scope;
    readonly repositoryIds: readonly string[];
    readonly epoch: number;
    readonly createdAt: string;
  }[];
};

/** The cast is sound because only `writeSnapshot` below makes these members. */
function parseSnapshot(snapshot: JsonObject): TrustRulesSnapshot {
  return snapshot as TrustRulesSnapshot;
}

function storedRule({ scope, repositoryIds, ...stored }: TrustRulesSnapshot['trustRules'][number]): TrustRule {
  return {
    ...stored,
    id: uuid(stored.id),
    conditionsRef: vaultRef(stored.conditionsRef),
    repositories: { scope, repositoryIds: repositoryIds.map((id) => uuid<RepositoryId>(id)) },
    createdAt: timestamp(stored.createdAt),
  };
}

export const accountTrustRules: Facet<AccountTrustRules, TrustRuleEvent> = {
  kinds: trustRuleEventKinds,
  initial: { trustRules: new Map<TrustRuleId, TrustRule>() },
  evolve: evolveTrustRules,
  writeSnapshot({ trustRules }) {
    const stored = [...trustRules.values()].map(({ repositories: { scope, repositoryIds }, ...rule }) => ({
      ...rule,
      scope,
      repositoryIds,
    }));
    return { trustRules: stored } satisfies TrustRulesSnapshot;
  },
  readSnapshot(snapshot) {
    const { trustRules } = parseSnapshot(snapshot);
    return { trustRules: new Map(trustRules.map(storedRule).map((rule) => [rule.id, rule])) };
  },
  sizeBytes({ trustRules }) {
    let total = 0;
    for (const { issuer, repositories } of trustRules.values()) {
      total += 1_000 + 2 * issuer.length + 60 * repositories.repositoryIds.length;
    }
    return total;
  },
};
