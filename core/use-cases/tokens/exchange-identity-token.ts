/**
 * Exchanges an identity token for an access token of 15 minutes.
 *
 * Invariants: `AccessTokenExchanged` is the commit point, on a stream whose name comes from the identity token's issuer
 * and `jti`, or from its issuer and what the issuer signed, and which must be empty. So an identity token is exchanged
 * once, on whatever nodes it races and however its signature is written, and a process that dies before the append has
 * used nothing up. The append is guarded by the account's stream, so a rule that was changed or deleted during an
 * exchange gives out nothing. The caller learns nothing about a refusal of its token; the rule's owner does.
 */
import { decideAccessToken } from '../../access-token/decide.ts';
import { accessTokens } from '../../access-token/evolve.ts';
import type { ExchangedToken } from '../../access-token/state.ts';
import { accounts } from '../../account/evolve.ts';
import type { TrustRule } from '../../account/trust-rules/state.ts';
import { refuse } from '../../kernel/decider.ts';
import type { Cause } from '../../kernel/envelope.ts';
import { type AccessTokenId, type AccountId, plusMs, type TrustRuleId, uuid } from '../../kernel/ids.ts';
import { EXCHANGED_TOKEN_SPAN_MS } from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';
import type { Failpoint } from '../../ports/failpoints.ts';
import type { LastUse } from '../../ports/last-use.ts';
import type { RefusedExchange, RefusedExchanges } from '../../ports/refused-exchanges.ts';
import { execute, type Guarding } from '../../runtime/execute.ts';
import { type ChangesContext, waitForChange } from '../../usage/changes.ts';
import { unlessErased } from '../accounts/erased-account-refusal.ts';
import { TOKEN_PREFIX_LENGTH } from '../callers/authenticate.ts';
import { type Identity, type JudgeContext, type Judgement, judgeIdentityToken } from './judge-identity-token.ts';

export type ExchangeContext = JudgeContext &
  ChangesContext & {
    readonly failpoint: Failpoint;
    readonly lastUse: Pick<LastUse, 'touch'>;
    readonly refusedExchanges: RefusedExchanges;
    /** Returns a new secret that holds the token's id (core/access-token/exchanged-secret.ts). */
    readonly newExchangedSecret: (id: AccessTokenId) => string;
  };

export interface Exchanged {
  readonly id: AccessTokenId;
  readonly token: ExchangedToken;
  /** Returned only here, once. It is stored nowhere. */
  readonly secret: string;
}

type Refused = { readonly refused: Refusal };
const FAILED: Refused = { refused: { code: 'oidc-exchange-failed' } };

/** Namespace of the ids of exchanged tokens: UUIDs version 5 of the issuer and the `jti`, with a space between. */
const EXCHANGED_ID_NAMESPACE = uuid('0d0f9c4e-2f5a-5b6e-8a41-7c2d9e6b3f18');

/**
 * Namespace of the ids of tokens that were exchanged for one without `jti`: UUIDs version 5 of the issuer and the hash
 * of what it signed. The signature is left out: anybody can write it in several forms that are all valid.
 */
const EXCHANGED_WITHOUT_ID_NAMESPACE = uuid('b3a86f0e-51d7-5c2b-93e4-6d0c7f2a9e54');

function exchangedIdOf({ ids }: JudgeContext, { issuer, tokenId, signedHash }: Identity): AccessTokenId {
  // No issuer holds a space, so two different pairs never make the same name.
  return tokenId === null
    ? ids.derive<AccessTokenId>(EXCHANGED_WITHOUT_ID_NAMESPACE, `${issuer} ${signedHash}`)
    : ids.derive<AccessTokenId>(EXCHANGED_ID_NAMESPACE, `${issuer} ${tokenId}`);
}

/** `causeFor` returns the cause of the event; it is called when account and rule are known. */
export async function exchangeIdentityToken(
  context: ExchangeContext,
  causeFor: (account: AccountId, rule: TrustRuleId) => Promise<Cause>,
  idToken: string,
): Promise<Exchanged | Refused> {
  const judgement = await judgeIdentityToken(context, idToken);
  if (judgement.outcome === 'refused') {
    await context.refusedExchanges.note(judgement.account, judgement.refusals, context.clock.now());
  }
  if (judgement.outcome !== 'matched') return FAILED;
  const { account, rule } = judgement;
  await context.failpoint('exchange-verified');
  const { state } = await context.entities.get(accounts, account);
  if (state.status !== 'open') return FAILED;
  const waitSeconds = await waitForChange(context, { id: account, plan: state.plan }, 'token');
  if (waitSeconds !== null) return refuse({ code: 'changes-quota-reached', waitSeconds });
  const exchanged = await appendExchange(context, await causeFor(account, rule.id), judgement);
  if ('fault' in exchanged) {
    const refusal: RefusedExchange = { rule: rule.id, fault: exchanged.fault, claim: null, found: null };
    await context.refusedExchanges.note(account, [refusal], context.clock.now());
    return FAILED;
  }
  context.lastUse.touch(rule.id);
  return exchanged;
}

/** Judges a token as an exchange would, and exchanges nothing. `used` tells whether it was exchanged before. */
export async function tryIdentityToken(
  context: JudgeContext,
  idToken: string,
): Promise<{ readonly judgement: Judgement; readonly used: boolean }> {
  const judgement = await judgeIdentityToken(context, idToken);
  if (judgement.outcome !== 'matched') return { judgement, used: false };
  const { state } = await context.entities.get(accessTokens, exchangedIdOf(context, judgement.identity));
  return { judgement, used: state.status !== 'absent' };
}

async function appendExchange(
  context: ExchangeContext,
  cause: Cause,
  { account, rule, identity }: Extract<Judgement, { outcome: 'matched' }>,
): Promise<Exchanged | { readonly fault: 'used-before' | 'rule-changed' }> {
  const id = exchangedIdOf(context, identity);
  const secret = context.newExchangedSecret(id);
  const subject = await unlessErased(
    context.vault.put(account, 'oidc-subject', identity.subject.toWellFormed()).then((ref) => ({ ref })),
  );
  if ('refused' in subject) return { fault: 'rule-changed' };
  const { scope, repositoryIds } = rule.repositories;
  const token = {
    account,
    trustRule: { id: rule.id, epoch: rule.epoch },
    scope,
    repositoryIds,
    grants: rule.grants,
    expiresAt: plusMs(context.clock.now(), EXCHANGED_TOKEN_SPAN_MS),
    secretHash: context.digest.sha256(secret),
    tokenPrefix: secret.slice(0, TOKEN_PREFIX_LENGTH),
    subjectRef: subject.ref,
  };
  const guarding = guardedByRule(context, account, rule);
  const exchanged = await execute(context, accessTokens, id, { account, cause, guarding }, (state) =>
    decideAccessToken(state, { type: 'ExchangeIdentityToken', token }),
  );
  if ('refused' in exchanged) {
    return { fault: exchanged.refused.code === 'oidc-exchange-failed' ? 'used-before' : 'rule-changed' };
  }
  await context.failpoint('exchange-appended');
  const { state } = exchanged.entity;
  if (state.status !== 'exchanged') throw new TypeError('A token that was just exchanged is not there');
  return { id, token: state, secret };
}

/** The rule must be as it was judged when the append commits. */
function guardedByRule(context: JudgeContext, account: AccountId, { id, epoch }: TrustRule): Guarding {
  let first = true;
  return async () => {
    const { state, stream, revision } = first
      ? await context.entities.get(accounts, account)
      : await context.entities.reload(accounts, account);
    first = false;
    if (state.status !== 'open' || state.trustRules.get(id)?.epoch !== epoch) {
      return refuse({ code: 'trust-rule-not-found' });
    }
    return { guards: [{ stream, revision }] };
  };
}
