/**
 * Decides the commands of an account's trust rules.
 *
 * Invariants: a rule carries only grants and repositories that its maker may use, at its creation and at every
 * change, whatever the change is about. So nobody gets more by a rule than by the own token.
 */
import { permissionsRefusals, repositoriesRefusal, sameItems, unique } from '../../access-token/decide.ts';
import { coversSelection } from '../../access-token/repository-selection.ts';
import { accept, type Decision, refuse } from '../../kernel/decider.ts';
import { permits } from '../../kernel/grants.ts';
import type { RepositoryId } from '../../kernel/ids.ts';
import { TOKEN_NAME_LENGTH_MAX, TRUST_RULES_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import { codePointCount } from '../../kernel/text.ts';
import type { Account, OpenAccount } from '../state.ts';
import type { RuleMaker, TrustRuleCommand, TrustRuleSettings } from './commands.ts';
import type { TrustRuleChanged, TrustRuleEvent } from './events.ts';
import type { TrustRule } from './state.ts';

export function decideTrustRule(account: Account, command: TrustRuleCommand): Decision<TrustRuleEvent> {
  if (account.status !== 'open') return refuse({ code: 'account-not-found' });
  if (command.type === 'CreateTrustRule') return decideCreation(account, command);
  const rule = account.trustRules.get(command.id);
  if (rule === undefined) return refuse({ code: 'trust-rule-not-found' });
  if (command.type === 'ChangeTrustRule') return decideChange(account, rule, command);
  const data = { rule_id: rule.id, removed_ref: rule.conditionsRef };
  return accept<TrustRuleEvent>({ type: 'TrustRuleDeleted', data });
}

function decideCreation(
  account: OpenAccount,
  { id, settings: wanted, maker }: Extract<TrustRuleCommand, { type: 'CreateTrustRule' }>,
): Decision<TrustRuleEvent> {
  if (account.trustRules.size >= TRUST_RULES_MAX) return refuse({ code: 'trust-rule-limit-reached' });
  const settings = withoutDuplicates(wanted);
  const refused = settingsRefusal(account, settings, settings.repositoryIds, maker);
  if (refused !== null) return refuse(refused);
  return accept<TrustRuleEvent>({
    type: 'TrustRuleCreated',
    data: {
      rule_id: id,
      name: settings.name,
      issuer: settings.issuer,
      conditions_ref: settings.conditionsRef,
      scope: settings.scope,
      grants: settings.grants,
      repository_ids: settings.repositoryIds,
    },
  });
}

function decideChange(
  account: OpenAccount,
  rule: TrustRule,
  { changes, maker }: Extract<TrustRuleCommand, { type: 'ChangeTrustRule' }>,
): Decision<TrustRuleEvent> {
  const { scope, repositoryIds } = rule.repositories;
  const merged = withoutDuplicates({
    name: changes.name ?? rule.name,
    issuer: changes.issuer ?? rule.issuer,
    conditionsRef: changes.conditionsRef ?? rule.conditionsRef,
    grants: changes.grants ?? rule.grants,
    scope: changes.scope ?? scope,
    repositoryIds: changes.repositoryIds ?? repositoryIds,
  });
  // The rule may keep the id of a repository that was deleted since. Only the ids that are added must exist.
  const added = merged.repositoryIds.filter((id) => !repositoryIds.includes(id));
  const refused = settingsRefusal(account, merged, added, maker);
  if (refused !== null) return refuse(refused);
  const changed = {
    ...(merged.name === rule.name ? {} : { name: merged.name }),
    ...(merged.issuer === rule.issuer ? {} : { issuer: merged.issuer }),
    ...(merged.conditionsRef === rule.conditionsRef ? {} : { conditions_ref: merged.conditionsRef }),
    ...(merged.scope === scope ? {} : { scope: merged.scope }),
    ...(sameItems(merged.grants, rule.grants) ? {} : { grants: merged.grants }),
    ...(sameItems(merged.repositoryIds, repositoryIds) ? {} : { repository_ids: merged.repositoryIds }),
  };
  if (Object.keys(changed).length === 0) return accept<TrustRuleEvent>();
  const removed_ref = 'conditions_ref' in changed ? rule.conditionsRef : null;
  const data: TrustRuleChanged['data'] = { rule_id: rule.id, ...changed, removed_ref };
  return accept<TrustRuleEvent>({ type: 'TrustRuleChanged', data });
}

function settingsRefusal(
  account: OpenAccount,
  settings: TrustRuleSettings,
  mustExist: readonly RepositoryId[],
  maker: RuleMaker,
): Refusal | null {
  return (
    settingsRefusals(settings)[0] ??
    makerRefusal(settings, maker) ??
    repositoriesRefusal(mustExist, (id) => account.repositories.has(id))
  );
}

/** Returns every refusal that the name and the permissions alone cause. */
export function settingsRefusals(
  settings: Pick<TrustRuleSettings, 'name' | 'grants' | 'scope' | 'repositoryIds'>,
): readonly Refusal[] {
  const nameLength = codePointCount(settings.name);
  const isNamed = nameLength >= 1 && nameLength <= TOKEN_NAME_LENGTH_MAX;
  return [...(isNamed ? [] : [{ code: 'trust-rule-name-length' } as const]), ...permissionsRefusals(settings)];
}

function makerRefusal(settings: TrustRuleSettings, maker: RuleMaker): Refusal | null {
  const lacking = settings.grants.find((grant) => !permits(maker.grants, grant));
  if (lacking !== undefined) return { code: 'trust-rule-exceeds-maker', lacks: lacking };
  return coversSelection(maker.selection, settings)
    ? null
    : { code: 'trust-rule-exceeds-maker', lacks: settings.scope };
}

function withoutDuplicates(settings: TrustRuleSettings): TrustRuleSettings {
  return { ...settings, grants: unique(settings.grants), repositoryIds: unique(settings.repositoryIds) };
}
