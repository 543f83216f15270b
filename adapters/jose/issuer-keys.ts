/**
 * The public keys of issuers, found by OpenID Connect Discovery 1.0, section 4.
 *
 * Invariants: an issuer's documents are fetched by the rules of outgoing requests, bounded in bytes and time, and no
 * redirect is followed. The configuration must name the issuer itself. A caller waits for its own account's turn first
 * and only then joins a fetch, so callers of one account wait for no turn of another. Keys are kept for a bounded time,
 * a token that names an unknown key makes them be read again once in a while, and an issuer that failed is left alone
 * for a while.
 */
import type { JSONWebKeySet, JWK } from 'jose';
import { KIB } from '../../core/kernel/byte-units.ts';
import { createFairSlots } from '../../core/kernel/fair-slots.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { type CacheSize, showCache } from '../../core/kernel/shown-caches.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { VerificationFault } from '../../core/ports/identity-tokens.ts';
import type { OutgoingRequests } from '../../core/ports/outgoing-requests.ts';

/** One of an issuer's documents: its configuration, or its keys. */
export const ISSUER_DOCUMENT_BYTES_MAX = 64 * KIB;
/** The time for each of an issuer's documents. */
export const ISSUER_FETCH_SPAN_MS = 5_000;
/** Keys that an issuer lists, and the length of an RSA key: its modulus in base64url. */
export const ISSUER_KEYS_MAX = 100;
export const ISSUER_RSA_MODULUS_LENGTH_MAX = 1_366;
/**
 * How long the keys of an issuer are kept, and how soon they are read again for a token that names an unknown key.
 * Internal: it is how fresh a copy of an issuer's keys is.
 */
export const ISSUER_KEYS_KEPT_MS = 10 * 60_000;
export const ISSUER_KEYS_KEPT_LEAST_MS = 60_000;
/** How long an issuer that failed is not asked again. Internal: it is how often an issuer is asked. */
export const ISSUER_FAILURE_KEPT_MS = 10_000;
/** Issuers whose keys a node keeps. */
export const ISSUERS_KEPT_MAX = 200;
/** Issuers that a node asks at the same time, in all and for one account. Internal: further requests wait. */
export const ISSUER_FETCHES_AT_ONCE_MAX = 32;
export const ISSUER_FETCHES_PER_ACCOUNT_MAX = 2;

export interface IssuerKeysOptions {
  readonly outgoing: Pick<OutgoingRequests, 'send'>;
  readonly clock: Pick<Clock, 'monotonicMs'>;
}

type Fetched = { readonly set: JSONWebKeySet } | VerificationFault;

interface Kept {
  readonly atMs: number;
  readonly fetched: Fetched;
}

export interface IssuerKeys {
  /** Returns the issuer's keys; read again if `kid` is not among those that were kept. */
  keysOf(account: AccountId, issuer: string, kid: string | undefined): Promise<Fetched>;
}

export function createIssuerKeys({ outgoing, clock }: IssuerKeysOptions): IssuerKeys {
  // By issuer; the one that was used last is at the end.
  const kept = new Map<string, Kept>();
  const looks = showCache('issuer_keys', 'entries', kept, sizeOf);
  const running = new Map<string, Promise<Fetched>>();
  const slots = createFairSlots({ slots: ISSUER_FETCHES_AT_ONCE_MAX, slotsPerKey: ISSUER_FETCHES_PER_ACCOUNT_MAX });

  function fresh(issuer: string, kid: string | undefined): Fetched | null {
    const entry = kept.get(issuer);
    if (entry === undefined) return null;
    kept.delete(issuer);
    kept.set(issuer, entry);
    const ageMs = clock.monotonicMs() - entry.atMs;
    if ('fault' in entry.fetched) return ageMs < ISSUER_FAILURE_KEPT_MS ? entry.fetched : null;
    const isEnough = kid === undefined || entry.fetched.set.keys.some((key) => key.kid === kid);
    return ageMs < (isEnough ? ISSUER_KEYS_KEPT_MS : ISSUER_KEYS_KEPT_LEAST_MS) ? entry.fetched : null;
  }

  function keep(issuer: string, fetched: Fetched): void {
    kept.delete(issuer);
    kept.set(issuer, { atMs: clock.monotonicMs(), fetched });
    for (const oldest of kept.keys()) {
      if (kept.size <= ISSUERS_KEPT_MAX) break;
      kept.delete(oldest);
    }
  }

  async function fetchOnce(issuer: string): Promise<Fetched> {
    const joined = running.get(issuer);
    if (joined !== undefined) return joined;
    const fetching = fetchKeys(outgoing, issuer);
    running.set(issuer, fetching);
    try {
      const fetched = await fetching;
      keep(issuer, fetched);
      return fetched;
    } finally {
      running.delete(issuer);
    }
  }

  return {
    async keysOf(account, issuer, kid) {
      const known = fresh(issuer, kid);
      if (known !== null) {
        looks.hits += 1;
        return known;
      }
      looks.misses += 1;
      const release = await slots.acquire(account, AbortSignal.timeout(ISSUER_FETCH_SPAN_MS)).catch(() => null);
      // Other issuers of the same account take all its turns: this one has not failed, so nothing is kept.
      if (release === null) return { fault: 'issuer-unreachable', found: 'busy' };
      try {
        return fresh(issuer, kid) ?? (await fetchOnce(issuer));
      } finally {
        release();
      }
    },
  };
}

function sizeOf({ size }: ReadonlyMap<string, Kept>): CacheSize {
  return { taken: size, max: ISSUERS_KEPT_MAX };
}

async function fetchKeys(outgoing: IssuerKeysOptions['outgoing'], issuer: string): Promise<Fetched> {
  const configuration = await fetchJson(outgoing, `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  if ('fault' in configuration) return configuration;
  const { issuer: named, jwks_uri: address } = configuration.json;
  if (named !== issuer) return { fault: 'issuer-mismatch', found: null };
  if (typeof address !== 'string') return { fault: 'issuer-answer-invalid', found: 'no jwks_uri' };
  const answer = await fetchJson(outgoing, address);
  if ('fault' in answer) return answer;
  const { keys } = answer.json;
  if (!Array.isArray(keys)) return { fault: 'issuer-answer-invalid', found: 'no keys' };
  if (keys.length > ISSUER_KEYS_MAX) return { fault: 'issuer-answer-invalid', found: 'too many keys' };
  return { set: { keys: keys.filter(isUsable) } };
}

type Json = { readonly json: Readonly<Record<string, unknown>> };

async function fetchJson(outgoing: IssuerKeysOptions['outgoing'], url: string): Promise<Json | VerificationFault> {
  const answer = await outgoing.send({
    url,
    method: 'GET',
    headers: { accept: 'application/json' },
    body: null,
    spanMs: ISSUER_FETCH_SPAN_MS,
    answerBytesMax: ISSUER_DOCUMENT_BYTES_MAX,
  });
  if (answer.outcome === 'refused') return { fault: 'issuer-unreachable', found: answer.fault };
  if (answer.outcome === 'failed') return { fault: 'issuer-unreachable', found: answer.failure };
  if (answer.status !== 200) return { fault: 'issuer-answer-invalid', found: `status ${answer.status}` };
  if (answer.extent === 'cut') return { fault: 'issuer-unreachable', found: 'answer-cut' };
  if (answer.extent === 'bounded') return { fault: 'issuer-answer-invalid', found: 'too large' };
  return parseDocument(new TextDecoder().decode(answer.body));
}

/** The cast is sound: an object of JSON has members of unknown types. */
function parseDocument(text: string): Json | VerificationFault {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return { json: value as Json['json'] };
  } catch {
    // Not JSON: answered below, like JSON that is no object.
  }
  return { fault: 'issuer-answer-invalid', found: 'not a JSON object' };
}

/** A public key whose use costs little: a shared secret is not a public key, and a huge RSA key takes long. */
function isUsable(key: unknown): key is JWK {
  if (typeof key !== 'object' || key === null) return false;
  const { kty, n, e } = key as { readonly kty?: unknown; readonly n?: unknown; readonly e?: unknown };
  if (kty === 'EC' || kty === 'OKP') return true;
  if (kty !== 'RSA' || typeof n !== 'string' || typeof e !== 'string') return false;
  return n.length <= ISSUER_RSA_MODULUS_LENGTH_MAX && e.length <= RSA_EXPONENT_LENGTH_MAX;
}

/** 65537 takes four digits; longer exponents make verifying slow. */
const RSA_EXPONENT_LENGTH_MAX = 8;
