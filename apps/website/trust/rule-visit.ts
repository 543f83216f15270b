/** What the pages of trust rules take from a visit: the origin of a change, and the rule of the address. */
import { ALL_REPOSITORIES } from '../../../core/access-token/repository-selection.ts';
import { parseUuid, type TrustRuleId } from '../../../core/kernel/ids.ts';
import { readTrustRule, type TrustRuleWithLastUse } from '../../../core/use-cases/tokens/list-trust-rules.ts';
import type { TrustRuleOrigin } from '../../../core/use-cases/tokens/trust-rules.ts';
import type { SiteContext } from '../context.ts';
import type { PersonVisit } from '../layout/visit.ts';

export const TRUST = '/oidc-trust';

/** A person may do everything in the own account, so a rule that they make may carry everything. */
export async function ruleOrigin(visit: PersonVisit): Promise<TrustRuleOrigin> {
  return { ...(await visit.origin(null)), maker: { grants: ['ALL'], selection: ALL_REPOSITORIES } };
}

/** Returns the rule that the address names; null if there is none. */
export async function ruleOf(context: SiteContext, visit: PersonVisit): Promise<TrustRuleWithLastUse | null> {
  const id = parseUuid<TrustRuleId>(visit.params['id'] ?? '');
  if (id === null) return null;
  const found = await readTrustRule(context, visit.person.account, id);
  return 'refused' in found ? null : found;
}

/** Returns the address of a rule's page, or of one below it. */
export function pathOf(id: TrustRuleId, below = ''): string {
  return `${TRUST}/${id}${below}`;
}

/** The audience that identity tokens must have for the person's account. */
export function audienceOf({ webUrl, person }: PersonVisit): string {
  return `${webUrl}/${person.username}`;
}
