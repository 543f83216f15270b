/**
 * Creates, changes, finds and deletes trust rules. The rules about them are decided on the account's own stream.
 *
 * Invariants: an issuer is checked before it is stored. Conditions are in the vault before the event that names
 * them, and are removed after the event that supersedes them. Each version of a rule's conditions has a record of its
 * own, so removing one never removes what another rule uses.
 */
import { accounts } from '../../account/evolve.ts';
import type { Account } from '../../account/state.ts';
import type { RuleMaker, TrustRuleSettings } from '../../account/trust-rules/commands.ts';
import { conditionsRefusals, type TrustConditions } from '../../account/trust-rules/conditions.ts';
import { decideTrustRule, settingsRefusals } from '../../account/trust-rules/decide.ts';
import type { TrustRule } from '../../account/trust-rules/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import type { AccountId, TrustRuleId } from '../../kernel/ids.ts';
import { canonicalJson } from '../../kernel/json.ts';
import { TRUST_RULES_MAX } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { VaultRef } from '../../kernel/vault-ref.ts';
import type { OutgoingRequests } from '../../ports/outgoing-requests.ts';
import type { RefusedExchanges } from '../../ports/refused-exchanges.ts';
import type { Vault } from '../../ports/vault.ts';
import { type Context, execute, type Guarding } from '../../runtime/execute.ts';
import { unlessErased } from '../accounts/erased-account-refusal.ts';

export type TrustRuleContext = Context & {
  readonly vault: Vault;
  readonly outgoing: Pick<OutgoingRequests, 'check'>;
  readonly refusedExchanges: Pick<RefusedExchanges, 'remove'>;
};

export interface TrustRuleOrigin {
  readonly account: AccountId;
  readonly cause: Cause;
  readonly guarding: Guarding;
  /** What the caller may do. `guarding` must fail the append if the caller has lost any of it. */
  readonly maker: RuleMaker;
}

export interface FoundTrustRule {
  /** The name of the rule's account: the audience of identity tokens names it. */
  readonly username: string;
  readonly rule: TrustRule;
  readonly conditions: TrustConditions;
}

export type NewTrustRule = Omit<TrustRuleSettings, 'conditionsRef'> & TrustConditions;

type Refused = { readonly refused: Refusal };
type Reading = Pick<TrustRuleContext, 'entities' | 'vault'>;
const NOT_FOUND: Refused = { refused: { code: 'trust-rule-not-found' } };

/** Lists the account's trust rules, oldest first. */
export async function listTrustRules(context: Reading, account: AccountId): Promise<readonly FoundTrustRule[]> {
  const { state } = await context.entities.get(accounts, account);
  const ids = state.status === 'open' ? [...state.trustRules.keys()] : [];
  const found = await Promise.all(ids.map((id) => findTrustRule(context, account, id)));
  return found.filter((rule): rule is FoundTrustRule => !('refused' in rule));
}

/**
 * The number of times that a rule's conditions may change while they are being read. Internal: only changes during as
 * many reads in a row reach it.
 */
const READS_MAX = 10;

export async function findTrustRule(
  context: Reading,
  account: AccountId,
  id: TrustRuleId,
): Promise<FoundTrustRule | Refused> {
  let { state } = await context.entities.get(accounts, account);
  for (let read = 0; read < READS_MAX; read += 1) {
    const rule = ruleOf(state, id);
    if (state.status !== 'open' || rule === undefined) return NOT_FOUND;
    const record = await context.vault.get(account, 'oidc-conditions', rule.conditionsRef);
    if (record !== null) return { username: state.username, rule, conditions: parseConditions(record) };
    // The record was removed after the state was read. The log holds the event that superseded it.
    ({ state } = await context.entities.reload(accounts, account));
  }
  throw new Error(`The vault has no conditions of trust rule ${id}`);
}

export async function createTrustRule(
  context: TrustRuleContext,
  origin: TrustRuleOrigin,
  { subject, claims, ...settings }: NewTrustRule,
): Promise<FoundTrustRule | Refused> {
  const { account, maker } = origin;
  const conditions = { subject, claims };
  const { state } = await context.entities.get(accounts, account);
  // Checked early, before the issuer costs a DNS lookup. The decision below is the one that counts.
  if (state.status === 'open' && state.trustRules.size >= TRUST_RULES_MAX) {
    return refuse({ code: 'trust-rule-limit-reached' });
  }
  const invalid = conditionsRefusals(conditions)[0] ?? (await issuerRefusal(context, settings.issuer));
  if (invalid !== null) return refuse(invalid);
  const id = context.ids.next<TrustRuleId>();
  const stored = await unlessErased(storeConditions(context, account, conditions));
  if ('refused' in stored) return stored;
  const { conditionsRef } = stored;
  const created = await execute(context, accounts, account, origin, (current) =>
    decideTrustRule(current, { type: 'CreateTrustRule', id, settings: { ...settings, conditionsRef }, maker }),
  );
  if ('refused' in created) {
    await context.vault.delete(account, conditionsRef);
    return created;
  }
  return { ...writtenRule(created.entity.state, id), conditions };
}

/** Changes the members that are present. Every change ends the tokens that the rule gave out. */
export async function changeTrustRule(
  context: TrustRuleContext,
  origin: TrustRuleOrigin,
  id: TrustRuleId,
  { subject, claims, ...changes }: Partial<NewTrustRule>,
): Promise<FoundTrustRule | Refused> {
  const { account, maker } = origin;
  const before = await findTrustRule(context, account, id);
  if ('refused' in before) return before;
  const conditions = { subject: subject ?? before.conditions.subject, claims: claims ?? before.conditions.claims };
  const { issuer } = changes;
  const invalid =
    conditionsRefusals(conditions)[0] ??
    (issuer === undefined || issuer === before.rule.issuer ? null : await issuerRefusal(context, issuer));
  if (invalid !== null) return refuse(invalid);
  const isSame = canonicalJson({ ...conditions }) === canonicalJson({ ...before.conditions });
  const stored = isSame ? null : await unlessErased(storeConditions(context, account, conditions));
  if (stored !== null && 'refused' in stored) return stored;
  let superseded: VaultRef | null = null;
  const changed = await execute(context, accounts, account, origin, (state) => {
    // The last call of this function is the one that commits.
    superseded = stored === null ? null : (ruleOf(state, id)?.conditionsRef ?? null);
    return decideTrustRule(state, { type: 'ChangeTrustRule', id, changes: { ...changes, ...stored }, maker });
  });
  if ('refused' in changed) {
    if (stored !== null) await context.vault.delete(account, stored.conditionsRef);
    return changed;
  }
  if (superseded !== null) await context.vault.delete(account, superseded);
  const written = writtenRule(changed.entity.state, id);
  if (stored !== null || written.rule.conditionsRef === before.rule.conditionsRef) return { ...written, conditions };
  return findTrustRule(context, account, id);
}

export async function deleteTrustRule(
  context: Pick<TrustRuleContext, 'vault' | 'refusedExchanges'> & Context,
  origin: Omit<TrustRuleOrigin, 'maker'>,
  id: TrustRuleId,
): Promise<{ readonly deleted: TrustRuleId } | Refused> {
  const { account } = origin;
  let superseded: VaultRef | null = null;
  const deleted = await execute(context, accounts, account, origin, (state) => {
    superseded = ruleOf(state, id)?.conditionsRef ?? null;
    return decideTrustRule(state, { type: 'DeleteTrustRule', id });
  });
  if ('refused' in deleted) return deleted;
  if (superseded !== null) await context.vault.delete(account, superseded);
  await context.refusedExchanges.remove(account, id);
  return { deleted: id };
}

/** Returns every refusal that what was written causes, for a form that was refused. `kept` is an issuer that stays. */
export async function refusalsOfTrustRule(
  context: Pick<TrustRuleContext, 'outgoing'>,
  wanted: NewTrustRule,
  kept: string | null,
): Promise<readonly Refusal[]> {
  const issuer = wanted.issuer === kept ? null : await issuerRefusal(context, wanted.issuer);
  return [...(issuer === null ? [] : [issuer]), ...conditionsRefusals(wanted), ...settingsRefusals(wanted)];
}

/** An issuer is compared with a token's `iss` as text, and its documents are found by its path. */
async function issuerRefusal(
  { outgoing }: Pick<TrustRuleContext, 'outgoing'>,
  issuer: string,
): Promise<Refusal | null> {
  if (/[?#]/.test(issuer)) return { code: 'trust-rule-issuer-form' };
  const fault = await outgoing.check(issuer);
  return fault === null ? null : { code: 'trust-rule-issuer-refused', fault };
}

function ruleOf(account: Account, id: TrustRuleId): TrustRule | undefined {
  return account.status === 'open' ? account.trustRules.get(id) : undefined;
}

function writtenRule(account: Account, id: TrustRuleId): Pick<FoundTrustRule, 'username' | 'rule'> {
  const rule = ruleOf(account, id);
  if (account.status !== 'open' || rule === undefined)
    throw new TypeError('A trust rule that was just written does not exist');
  return { username: account.username, rule };
}

async function storeConditions(
  { vault, ids }: Pick<TrustRuleContext, 'vault' | 'ids'>,
  account: AccountId,
  { subject, claims }: TrustConditions,
): Promise<{ readonly conditionsRef: VaultRef }> {
  // Equal values share a vault record, so the id makes each a different value.
  const record = canonicalJson({ id: ids.next(), subject, claims: { ...claims } });
  return { conditionsRef: await vault.put(account, 'oidc-conditions', record) };
}

/** The cast is sound because only `storeConditions` above makes these records. */
function parseConditions(record: string): TrustConditions {
  const { subject, claims } = JSON.parse(record) as TrustConditions;
  return { subject, claims };
}
