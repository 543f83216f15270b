/**
 * Judges an identity token against the trust rules of the account that its audience names.
 *
 * Invariants: an account is found by the audience, and an issuer is asked for its keys only if a rule of that account
 * names it. Whatever the token alone can show is judged before that. Claims are compared only after the signature was
 * verified. The oldest rule that matches decides; rules are never added up.
 */
import { accounts } from '../../account/evolve.ts';
import { mismatchOf, type PresentedClaims } from '../../account/trust-rules/conditions.ts';
import type { TrustRule } from '../../account/trust-rules/state.ts';
import type { Digest } from '../../kernel/digest.ts';
import type { AccountId } from '../../kernel/ids.ts';
import type { JsonValue } from '../../kernel/json.ts';
import { IDENTITY_TOKEN_ID_LENGTH_MAX, IDENTITY_TOKEN_SKEW_MS } from '../../kernel/limits.ts';
import type { IdentityTokens, UnverifiedToken } from '../../ports/identity-tokens.ts';
import type { ExchangeFault, RefusedExchange } from '../../ports/refused-exchanges.ts';
import type { Vault } from '../../ports/vault.ts';
import type { Context } from '../../runtime/execute.ts';
import { findAccount } from '../accounts/accounts.ts';
import { type FoundTrustRule, listTrustRules } from './trust-rules.ts';

/** The longest time from an identity token's `iat` to its `exp`. */
const IDENTITY_TOKEN_SPAN_MS = 24 * 60 * 60_000;
/** How much of a refused exchange's claims its rule's owner sees. */
export const REFUSED_EXCHANGE_TEXT_LENGTH_MAX = 200;

export type JudgeContext = Context & {
  readonly digest: Digest;
  readonly vault: Vault;
  readonly identityTokens: IdentityTokens;
  readonly addresses: () => { readonly webUrl: string };
};

/** The claims of a token that a rule let in. */
export interface Identity {
  readonly issuer: string;
  readonly subject: string;
  /** The claim `jti`; null if the token has none. */
  readonly tokenId: string | null;
  /** The SHA-256 of what the issuer signed: header and payload as they were sent. */
  readonly signedHash: string;
}

export type Judgement =
  /** No account is concerned: the text is no token, or its audience names no account. */
  | { readonly outcome: 'not-for-an-account'; readonly why: 'malformed' | 'audience' }
  | { readonly outcome: 'issuer-not-trusted'; readonly account: AccountId }
  /** Why each rule that names the issuer does not match, oldest first. */
  | { readonly outcome: 'refused'; readonly account: AccountId; readonly refusals: readonly RefusedExchange[] }
  | {
      readonly outcome: 'matched';
      readonly account: AccountId;
      readonly rule: TrustRule;
      readonly identity: Identity;
      /** Why the older rules that name the issuer do not match. */
      readonly refusals: readonly RefusedExchange[];
    };

/** The caller must have awaited `entities.barrier()`. */
export async function judgeIdentityToken(context: JudgeContext, token: string): Promise<Judgement> {
  const read = context.identityTokens.read(token);
  if (read === null) return { outcome: 'not-for-an-account', why: 'malformed' };
  const { claims, inexact } = read;
  const audience = ownAudience(claims['aud'], context.addresses().webUrl);
  const account = audience === null ? null : await findAccount(context, audience.username);
  if (audience === null || account === null) return { outcome: 'not-for-an-account', why: 'audience' };
  const issuer = claims['iss'];
  const rules = await rulesOfIssuer(context, account, issuer);
  if (typeof issuer !== 'string' || rules.length === 0) return { outcome: 'issuer-not-trusted', account };
  const now = context.clock.now();
  const identity: Identity = {
    issuer,
    subject: textOf(claims['sub']) ?? '',
    tokenId: textOf(claims['jti']),
    signedHash: context.digest.sha256(token.slice(0, token.lastIndexOf('.'))),
  };
  const fault =
    faultOf(read, Date.parse(now)) ??
    (await context.identityTokens.verify(token, { account, issuer, audience: audience.whole, now }));
  if (fault !== null) {
    const refusals = rules.map(({ id }) => ({ rule: id, fault: fault.fault, claim: null, found: fault.found }));
    return { outcome: 'refused', account, refusals };
  }
  return matchRules(context, account, { rules, presented: { claims, inexact }, identity });
}

/** Reads the rules' conditions and compares them, oldest rule first. */
async function matchRules(
  context: JudgeContext,
  account: AccountId,
  {
    rules,
    presented: claims,
    identity,
  }: { readonly rules: readonly TrustRule[]; readonly presented: PresentedClaims; readonly identity: Identity },
): Promise<Judgement> {
  const current = new Map((await listTrustRules(context, account)).map((found) => [found.rule.id, found]));
  const refusals: RefusedExchange[] = [];
  for (const { id, epoch } of rules) {
    const found: FoundTrustRule | undefined = current.get(id);
    if (found === undefined || found.rule.epoch !== epoch) {
      // Changed while the issuer was asked: it may name another issuer now.
      refusals.push({ rule: id, fault: 'rule-changed', claim: null, found: null });
      continue;
    }
    const mismatch = mismatchOf(found.conditions, claims);
    if (mismatch === null) return { outcome: 'matched', account, rule: found.rule, identity, refusals };
    const { claim, presented } = mismatch;
    refusals.push({ rule: id, fault: 'claim-mismatch', claim, found: presented === null ? null : cut(presented) });
  }
  return { outcome: 'refused', account, refusals };
}

async function rulesOfIssuer(
  { entities }: Pick<JudgeContext, 'entities'>,
  account: AccountId,
  issuer: JsonValue | undefined,
): Promise<readonly TrustRule[]> {
  const { state } = await entities.get(accounts, account);
  return state.status === 'open' ? [...state.trustRules.values()].filter((rule) => rule.issuer === issuer) : [];
}

/** Returns the account's name in the audience; of a list, in its first entry that has one. */
function ownAudience(
  audience: JsonValue | undefined,
  webUrl: string,
): { readonly whole: string; readonly username: string } | null {
  const prefix = `${webUrl}/`;
  const all: readonly JsonValue[] = typeof audience === 'string' ? [audience] : Array.isArray(audience) ? audience : [];
  const whole = all.find((one): one is string => typeof one === 'string' && one.startsWith(prefix));
  return whole === undefined ? null : { whole, username: whole.slice(prefix.length) };
}

/** Returns what is wrong with the token for every rule, as far as the token alone shows it; null if nothing is. */
function faultOf({ claims, isAlgorithmAllowed }: UnverifiedToken, nowMs: number): TokenFault | null {
  const fault = (code: ExchangeFault & TokenFault['fault']): TokenFault => ({ fault: code, found: null });
  const { aud, exp, nbf, iat, jti, sub } = claims;
  if (!isAlgorithmAllowed) return fault('algorithm-not-allowed');
  if (Array.isArray(aud) && aud.length !== 1) return fault('audience-not-alone');
  if (!isTime(exp) || !isTime(iat) || (nbf !== undefined && !isTime(nbf)) || typeof sub !== 'string') {
    return fault('claims-malformed');
  }
  if (jti !== undefined && !isTokenId(jti)) return fault('id-missing');
  if (exp * 1_000 + IDENTITY_TOKEN_SKEW_MS <= nowMs) return fault('expired');
  if (nbf !== undefined && nbf * 1_000 - IDENTITY_TOKEN_SKEW_MS > nowMs) return fault('not-yet-valid');
  if (iat * 1_000 - IDENTITY_TOKEN_SKEW_MS > nowMs) return fault('issued-in-the-future');
  return (exp - iat) * 1_000 > IDENTITY_TOKEN_SPAN_MS ? fault('lifetime-too-long') : null;
}

interface TokenFault {
  readonly fault: Exclude<ExchangeFault, 'claim-mismatch' | 'rule-changed' | 'used-before'>;
  readonly found: string | null;
}

/** Seconds since 1970, up to the year 9999. */
function isTime(value: JsonValue | undefined): value is number {
  return typeof value === 'number' && value >= 0 && value < 253_402_300_800;
}

function isTokenId(value: JsonValue): boolean {
  return typeof value === 'string' && value !== '' && value.length <= IDENTITY_TOKEN_ID_LENGTH_MAX;
}

function textOf(value: JsonValue | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

/** Cuts a text from a token and makes its control characters visible. */
function cut(text: string): string {
  const shown = text.toWellFormed().replaceAll(/\p{Cc}/gu, '\u{FFFD}');
  if (shown.length <= REFUSED_EXCHANGE_TEXT_LENGTH_MAX) return shown;
  return `${shown.slice(0, REFUSED_EXCHANGE_TEXT_LENGTH_MAX - 1).toWellFormed()}…`;
}
