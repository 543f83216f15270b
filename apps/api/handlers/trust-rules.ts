/** Trust rules, and the exchange of identity tokens. */
import type { z } from 'zod';
import { parseUuid, type TrustRuleId } from '../../../core/kernel/ids.ts';
import { networkOf } from '../../../core/kernel/network.ts';
import type { RateLimit } from '../../../core/ports/rate-limits.ts';
import { grantsOf, type Principal, selectionOf } from '../../../core/use-cases/callers/principal.ts';
import { exchangeIdentityToken } from '../../../core/use-cases/tokens/exchange-identity-token.ts';
import {
  addRuleLastUse,
  listRefusedExchanges,
  listRulesWithLastUse,
  readTrustRule,
  type TrustRuleWithLastUse,
} from '../../../core/use-cases/tokens/list-trust-rules.ts';
import {
  changeTrustRule,
  createTrustRule,
  deleteTrustRule,
  type NewTrustRule,
  type TrustRuleOrigin,
} from '../../../core/use-cases/tokens/trust-rules.ts';
import { upToDate } from '../../front-door/admission.ts';
import { faultMessage } from '../../front-door/texts/refused-exchanges.ts';
import { noContent, ok, problem } from '../http/answer.ts';
import { type AccountCall, accountRoute, type Outcome, type PublicCall, publicRoute, type Route } from '../route.ts';
import { ID_PARAMS } from '../schemas/params.ts';
import {
  EXCHANGE,
  EXCHANGED,
  NEW_TRUST_RULE,
  OFFERED_TRUST_RULE,
  REFUSED_EXCHANGES,
  TRUST_RULE,
  TRUST_RULE_CHANGES,
  TRUST_RULES,
} from '../schemas/trust-rules.ts';

/** Exchanges that one network may try within a minute (core/kernel/network.ts). */
export const EXCHANGES_PER_MINUTE_MAX = 20;

export const TRUST_RULE_ROUTES: readonly Route[] = [
  publicRoute({
    operationId: 'exchangeIdentityToken',
    tag: 'OIDC trust',
    summary: 'Exchange an identity token for an access token',
    description:
      'For jobs of a CI system. The audience of the identity token names the account: `<web address of the service>/<username>`. The oldest trust rule of the account that matches decides what the access token may do. It is valid for 15 minutes, until its rule is changed or deleted, or until it revokes itself. An identity token can be exchanged once. A refusal says nothing but that the exchange failed: the owner of the rules reads why.',
    method: 'POST',
    path: '/v1/oidc/token',
    schemas: { body: EXCHANGE },
    answers: { 200: EXCHANGED },
    problems: [401, 429, 503],
    handle: postExchange,
  }),
  accountRoute({
    operationId: 'createTrustRule',
    tag: 'OIDC trust',
    summary: 'Create a trust rule',
    description:
      'A rule cannot carry a grant or a repository that the token which makes it lacks (403). In `subject` and in the values of `claims`, `*` stands for one or more characters but `/`, `:` and control characters.',
    method: 'POST',
    path: '/v1/oidc/trust-rules',
    grant: 'API_OIDC_TRUST',
    scope: 'ALL_REPO',
    schemas: { body: NEW_TRUST_RULE },
    offered: OFFERED_TRUST_RULE,
    answers: { 201: TRUST_RULE },
    problems: [],
    handle: postTrustRule,
  }),
  accountRoute({
    operationId: 'listTrustRules',
    tag: 'OIDC trust',
    summary: 'List trust rules',
    description: 'Oldest first: the order in which they are compared with an identity token.',
    method: 'GET',
    path: '/v1/oidc/trust-rules',
    grant: 'API_OIDC_TRUST',
    scope: 'ALL_REPO',
    schemas: {},
    answers: { 200: TRUST_RULES },
    problems: [],
    handle: getTrustRules,
  }),
  accountRoute({
    operationId: 'getTrustRule',
    tag: 'OIDC trust',
    summary: 'Read a trust rule',
    method: 'GET',
    path: '/v1/oidc/trust-rules/{id}',
    grant: 'API_OIDC_TRUST',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS },
    answers: { 200: TRUST_RULE },
    problems: [404],
    handle: getTrustRule,
  }),
  accountRoute({
    operationId: 'updateTrustRule',
    tag: 'OIDC trust',
    summary: 'Change a trust rule',
    description:
      'Fields that are absent stay as they are. The token that changes a rule must itself hold all that the rule carries then (403). A change ends all access tokens that the rule has given out.',
    method: 'PUT',
    path: '/v1/oidc/trust-rules/{id}',
    grant: 'API_OIDC_TRUST',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS, body: TRUST_RULE_CHANGES },
    answers: { 200: TRUST_RULE },
    problems: [404],
    standing: getTrustRule,
    handle: putTrustRule,
  }),
  accountRoute({
    operationId: 'deleteTrustRule',
    tag: 'OIDC trust',
    summary: 'Delete a trust rule',
    description: 'Ends all access tokens that the rule has given out.',
    method: 'DELETE',
    path: '/v1/oidc/trust-rules/{id}',
    grant: 'API_OIDC_TRUST',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS },
    answers: { 204: null },
    problems: [404],
    handle: deleteRule,
  }),
  accountRoute({
    operationId: 'listRefusedExchanges',
    tag: 'OIDC trust',
    summary: 'List refused exchanges',
    description:
      'Why the rule did not let in identity tokens of its issuer: the newest 20 reasons, newest first, equal ones counted. They are kept for 30 days and are no part of the record.',
    method: 'GET',
    path: '/v1/oidc/trust-rules/{id}/refusals',
    grant: 'API_OIDC_TRUST',
    scope: 'ALL_REPO',
    schemas: { params: ID_PARAMS },
    answers: { 200: REFUSED_EXCHANGES },
    problems: [404],
    handle: getRefusals,
  }),
];

type Identified = { readonly params: z.output<typeof ID_PARAMS> };

/** An id that is not a UUID gets 404, like any id of no rule. */
const NOT_FOUND: Outcome = { refused: { code: 'trust-rule-not-found' } };

const EXCHANGES: RateLimit = { name: 'exchanges', timesMax: EXCHANGES_PER_MINUTE_MAX, spanMs: 60_000 };

async function postExchange(
  call: PublicCall,
  { body }: { readonly body: z.output<typeof EXCHANGE> },
): Promise<Outcome> {
  const { context, request, requestId } = call;
  const address = context.clientAddress(request);
  const waitSeconds = await context.rateLimits.take([{ limit: EXCHANGES, key: networkOf(address) }]);
  if (waitSeconds !== null) {
    return problem(429, 'Too many exchanges from this address', { 'retry-after': String(waitSeconds) });
  }
  await upToDate(context);
  const exchanged = await exchangeIdentityToken(
    context,
    async (account, rule) => ({
      actor: { kind: 'trust_rule', id: rule },
      requestId,
      sourceAddressRef: await context.sourceAddressRef(account, address),
      causationId: null,
    }),
    body.id_token,
  );
  if ('refused' in exchanged) return exchanged;
  const { id, token, secret } = exchanged;
  const answer: z.output<typeof EXCHANGED> = {
    id,
    token: secret,
    token_type: 'Bearer',
    expires_at: token.expiresAt,
    grants: [...token.grants],
    scope: token.scope,
    repository_ids: [...token.repositoryIds],
  };
  return ok(answer);
}

async function postTrustRule(
  call: AccountCall,
  { body }: { readonly body: z.output<typeof NEW_TRUST_RULE> },
): Promise<Outcome> {
  const { repository_ids: repositoryIds, ...wanted } = body;
  const created = await createTrustRule(call.context, await ruleOrigin(call), { ...wanted, repositoryIds });
  if ('refused' in created) return created;
  return ok(ruleObject(call, { ...created, lastUsedAt: null }), 201);
}

async function getTrustRules(call: AccountCall): Promise<Outcome> {
  const rules = await listRulesWithLastUse(call.context, call.principal.account);
  const list: z.output<typeof TRUST_RULES> = {
    trust_rules: rules.map((rule) => ruleObject(call, rule)),
  };
  return ok(list);
}

async function getTrustRule(call: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<TrustRuleId>(params.id);
  if (id === null) return NOT_FOUND;
  const found = await readTrustRule(call.context, call.principal.account, id);
  return 'refused' in found ? found : ok(ruleObject(call, found));
}

async function putTrustRule(
  call: AccountCall,
  { params, body }: Identified & { readonly body: z.output<typeof TRUST_RULE_CHANGES> },
): Promise<Outcome> {
  const id = parseUuid<TrustRuleId>(params.id);
  if (id === null) return NOT_FOUND;
  const changed = await changeTrustRule(call.context, await ruleOrigin(call), id, changesIn(body));
  if ('refused' in changed) return changed;
  return ok(ruleObject(call, await addRuleLastUse(call.context, changed)));
}

function changesIn(body: z.output<typeof TRUST_RULE_CHANGES>): Partial<NewTrustRule> {
  return {
    ...(body.name === undefined ? {} : { name: body.name }),
    ...(body.issuer === undefined ? {} : { issuer: body.issuer }),
    ...(body.subject === undefined ? {} : { subject: body.subject }),
    ...(body.claims === undefined ? {} : { claims: body.claims }),
    ...(body.scope === undefined ? {} : { scope: body.scope }),
    ...(body.grants === undefined ? {} : { grants: body.grants }),
    ...(body.repository_ids === undefined ? {} : { repositoryIds: body.repository_ids }),
  };
}

async function deleteRule(call: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<TrustRuleId>(params.id);
  if (id === null) return NOT_FOUND;
  const deleted = await deleteTrustRule(call.context, await call.origin(), id);
  return 'refused' in deleted ? deleted : noContent();
}

async function getRefusals({ context, principal }: AccountCall, { params }: Identified): Promise<Outcome> {
  const id = parseUuid<TrustRuleId>(params.id);
  if (id === null) return NOT_FOUND;
  const found = await listRefusedExchanges(context, principal.account, id);
  if ('refused' in found) return found;
  const list: z.output<typeof REFUSED_EXCHANGES> = {
    refusals: found.refusals.map((refusal) => ({
      reason: refusal.fault,
      message: faultMessage(refusal, found.conditions),
      claim: refusal.claim,
      found: refusal.found,
      times: refusal.times,
      first_at: refusal.firstAt,
      last_at: refusal.lastAt,
    })),
  };
  return ok(list);
}

async function ruleOrigin({ origin, principal }: AccountCall): Promise<TrustRuleOrigin> {
  return { ...(await origin()), maker: makerOf(principal) };
}

/** A rule carries no more than the caller's own token. */
function makerOf(principal: Principal): TrustRuleOrigin['maker'] {
  return { grants: grantsOf(principal), selection: selectionOf(principal) };
}

/** A rule in the form of docs/interface.md. */
function ruleObject(
  { context }: AccountCall,
  { username, rule, conditions, lastUsedAt }: TrustRuleWithLastUse,
): z.output<typeof TRUST_RULE> {
  const { scope, repositoryIds } = rule.repositories;
  return {
    id: rule.id,
    name: rule.name,
    issuer: rule.issuer,
    audience: `${context.addresses().webUrl}/${username}`,
    subject: conditions.subject,
    claims: { ...conditions.claims },
    grants: [...rule.grants],
    scope,
    repository_ids: [...repositoryIds],
    created_at: rule.createdAt,
    last_used_at: lastUsedAt,
  };
}
