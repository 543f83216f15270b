/**
 * What a trust rule asks of an identity token: its subject and its claims, exact or with `*`.
 *
 * Invariants: each `*` stands for one or more characters of one segment only, and for no control character. Segments
 * are split at `/` and `:`, so the pattern `repo:acme/*` matches neither `repo:acme-evil/x` nor `repo:acme/x/y` nor
 * `repo:acme/`. A comparison looks for each part between two wildcards once and never goes back, so no pattern makes
 * it slow.
 */
import type { JsonObject, JsonValue } from '../../kernel/json.ts';
import {
  TRUST_RULE_CLAIM_NAME_LENGTH_MAX,
  TRUST_RULE_CLAIMS_MAX,
  TRUST_RULE_PATTERN_LENGTH_MAX,
  TRUST_RULE_WILDCARDS_MAX,
} from '../../kernel/limits.ts';
import type { Refusal } from '../../kernel/refusal.ts';

export interface TrustConditions {
  /** A pattern of the claim `sub`. */
  readonly subject: string;
  /** A pattern for each of these claims. */
  readonly claims: Readonly<Record<string, string>>;
}

/** The claims that the service judges itself, for every rule. */
const JUDGED_CLAIMS: ReadonlySet<string> = new Set(['iss', 'aud', 'sub', 'exp', 'nbf', 'iat', 'jti']);
const CONTROL_CHARACTER = /\p{Cc}/u;
/** Control characters are in no identity and cannot be seen on a page; a lone surrogate has no UTF-8. */
const PATTERN = /^[^\p{Cc}\p{Cs}]+$/u;

/** Returns every refusal that the conditions cause. */
export function conditionsRefusals({ subject, claims }: TrustConditions): readonly Refusal[] {
  const refusals: Refusal[] = [];
  if (!isPattern(subject)) refusals.push({ code: 'trust-rule-subject-form' });
  const entries = Object.entries(claims);
  const areFine =
    entries.length <= TRUST_RULE_CLAIMS_MAX &&
    entries.every(([name, pattern]) => isClaimName(name) && isPattern(pattern));
  if (!areFine) refusals.push({ code: 'trust-rule-claims-form' });
  return refusals;
}

function isClaimName(name: string): boolean {
  return PATTERN.test(name) && name.length <= TRUST_RULE_CLAIM_NAME_LENGTH_MAX && !JUDGED_CLAIMS.has(name);
}

function isPattern(pattern: string): boolean {
  return (
    PATTERN.test(pattern) &&
    pattern.length <= TRUST_RULE_PATTERN_LENGTH_MAX &&
    pattern.split('*').length - 1 <= TRUST_RULE_WILDCARDS_MAX
  );
}

/** The first condition that a token does not meet. */
export interface Mismatch {
  /** `sub`, or the name of a claim. */
  readonly claim: string;
  readonly expected: string;
  /**
   * The text that was compared. Null if the token has no such claim, one that is no text, number or truth value, or a
   * number that is not compared.
   */
  readonly presented: string | null;
}

/** The claims of a token, and the names of those whose number was rounded or lost its sign when it was read. */
export interface PresentedClaims {
  readonly claims: JsonObject;
  readonly inexact: ReadonlySet<string>;
}

/** Returns the first condition that the claims of a token do not meet; null if they meet all. */
export function mismatchOf({ subject, claims }: TrustConditions, token: PresentedClaims): Mismatch | null {
  for (const [claim, expected] of [['sub', subject] as const, ...Object.entries(claims)]) {
    const isComparable = Object.hasOwn(token.claims, claim) && !token.inexact.has(claim);
    const presented = isComparable ? comparable(token.claims[claim]) : null;
    if (presented === null || !matches(expected, presented)) return { claim, expected, presented };
  }
  return null;
}

/** An issuer in JavaScript has rounded a number beyond 2^53 itself, so that its text may be that of a neighbour. */
function comparable(value: JsonValue | undefined): string | null {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Math.abs(value) <= Number.MAX_SAFE_INTEGER ? String(value) : null;
  return typeof value === 'boolean' ? String(value) : null;
}

/** Returns true if the pattern matches the whole text. */
export function matches(pattern: string, text: string): boolean {
  // No pattern holds a control character, so only a wildcard could let one in.
  if (CONTROL_CHARACTER.test(text)) return false;
  // With its group, the split keeps the separators, so that `:` never matches `/`.
  const wanted = pattern.split(/([/:])/);
  const given = text.split(/([/:])/);
  return wanted.length === given.length && wanted.every((part, index) => segmentMatches(part, given[index] ?? ''));
}

function segmentMatches(pattern: string, text: string): boolean {
  const [first = '', ...others] = pattern.split('*');
  const last = others.pop();
  if (last === undefined) return pattern === text;
  if (!text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of others) {
    // The wildcard before the part stands for one character at least.
    const found = text.indexOf(part, at + 1);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return at < end;
}
