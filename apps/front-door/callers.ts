/**
 * What identified callers may ask of this service: points a minute, concurrent requests, and appends and ref changes an
 * hour.
 *
 * Invariants: no request is counted by asking anybody: nodes tell each other their sums later
 * (apps/front-door/rate-exchange.ts). Tokens never use up what the person of their account has on the website, where
 * tokens are revoked. A refused request counts nothing. Who enters leaves exactly once.
 */
import { utf8Length } from '../../core/git/utf8.ts';
import { KIB } from '../../core/kernel/byte-units.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import type { Clock } from '../../core/ports/clock.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import { createSpanCounts, type SpanCounts } from './span-counts.ts';

/**
 * Points that callers may spend within a minute of the clock, by `REQUEST_POINTS`: of an account, by each of its
 * tokens, and by its person on the website. `STRATA_RATE_FACTOR` multiplies these, and the two rates of an hour below.
 */
export const ACCOUNT_POINTS_PER_MINUTE_MAX = 3_000_000;
export const TOKEN_POINTS_PER_MINUTE_MAX = 2_400_000;
export const PERSON_POINTS_PER_MINUTE_MAX = 120_000;
/** Requests that append to the log, which an account may begin within an hour of the clock. */
export const ACCOUNT_EVENTS_PER_HOUR_MAX = 50_000;
/** A request counts once more for each time this length of its body: what is in it may come into the log. */
export const RECORDED_BODY_BYTES = 4 * KIB;
/** Requests of an hour that tokens leave to the person on the website, who may have to revoke them. */
export const ACCOUNT_EVENTS_KEPT_FOR_PERSON = 1_000;
/** Refs that an account may change within an hour of the clock. */
export const ACCOUNT_REF_CHANGES_PER_HOUR_MAX = 250_000;
/** The log keeps names of refs permanently: a change of a longer one counts once more for each time this length. */
export const REF_CHANGE_NAME_BYTES = 256;
/**
 * Requests of an account that a node answers at the same time; and how many it may have while those of all accounts are
 * this many, so that the rest is kept for others.
 */
export const ACCOUNT_REQUESTS_AT_ONCE_MAX = 512;
export const REQUESTS_AT_ONCE_ROOMY_MAX = 1_536;
export const ACCOUNT_REQUESTS_AT_ONCE_TIGHT_MAX = 64;

/** Which rate is used up, or that too many requests of the account run. */
export type Exceeded =
  | 'token-points'
  | 'account-points'
  | 'person-points'
  | 'at-once'
  | 'events'
  | 'ref-changes'
  | 'changes-of-tokens'
  | 'changes-of-month';

/** What `X-RateLimit-*` tells. */
export interface RateState {
  /** Points within a minute of who asks: the token, or the person. */
  readonly limit: number;
  /** What is left of them, or of the account's if that is less. */
  readonly remaining: number;
  /** When the minute ends, in seconds since 1970. */
  readonly resetSeconds: number;
}

export interface RateRefusal {
  readonly exceeded: Exceeded;
  /** 1 or more. */
  readonly waitSeconds: number;
  readonly rate: RateState;
}

export interface Entered {
  readonly rate: RateState;
  /** To be called when the request is answered, or was given up. Later calls do nothing. */
  readonly leave: () => void;
}

export interface Callers {
  /** Counts a request that begins, by `REQUEST_POINTS`. */
  enter(principal: Principal, points: number): Entered | RateRefusal;
  /** Counts what a request that entered turned out to cost more. */
  charge(principal: Principal, points: number): RateRefusal | null;
  /** Counts a request that is about to append, and the refs that it wants to change. */
  record(principal: Principal, refChanges: number): RateRefusal | null;
  /** Counts the refs that a request wants to change which was counted when it began. */
  recordRefs(principal: Principal, refChanges: number): RateRefusal | null;
  /** Counts the body of such a request, since events are as long as what they record: one more for each 4 KiB. */
  recordBody(principal: Principal, bytes: number): RateRefusal | null;
  /** Makes the refusal of what another count than these decides. */
  refuse(principal: Principal, exceeded: Exceeded, waitSeconds: number): RateRefusal;
  /** All counts by account, token or person, which nodes exchange. */
  readonly counts: readonly SpanCounts[];
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** A request ends at any moment, so its place is soon free. */
const AT_ONCE_WAIT_SECONDS = 1;

export function createCallers(options: {
  readonly clock: Pick<Clock, 'now' | 'monotonicMs'>;
  readonly factor: number;
}): Callers {
  const { clock, factor } = options;
  const perMinute = (name: string, max: number) =>
    createSpanCounts({ name, max: max * factor, spanMs: MINUTE_MS, clock });
  const perHour = (name: string, max: number) => createSpanCounts({ name, max: max * factor, spanMs: HOUR_MS, clock });
  const accounts = perMinute('account-points', ACCOUNT_POINTS_PER_MINUTE_MAX);
  const tokens = perMinute('token-points', TOKEN_POINTS_PER_MINUTE_MAX);
  const persons = perMinute('person-points', PERSON_POINTS_PER_MINUTE_MAX);
  const events = perHour('events', ACCOUNT_EVENTS_PER_HOUR_MAX);
  const refChanges = perHour('ref-changes', ACCOUNT_REF_CHANGES_PER_HOUR_MAX);
  const running = createRunning();

  const rateOf = (principal: Principal): RateState => {
    const resetSeconds = accounts.endsAtSeconds();
    if (principal.kind === 'session') {
      return { limit: persons.max, remaining: persons.left(principal.account), resetSeconds };
    }
    const remaining = Math.min(tokens.left(principal.tokenId), accounts.left(principal.account));
    return { limit: tokens.max, remaining, resetSeconds };
  };
  const refuse = (principal: Principal, exceeded: Exceeded, waitSeconds: number): RateRefusal => ({
    exceeded,
    waitSeconds,
    rate: rateOf(principal),
  });
  /** Counts all of it or nothing. */
  const record = (principal: Principal, eventsCount: number, changes: number): RateRefusal | null => {
    const { account, kind } = principal;
    if (refChanges.left(account) < changes) return refuse(principal, 'ref-changes', refChanges.waitSeconds());
    const kept = kind === 'session' ? 0 : ACCOUNT_EVENTS_KEPT_FOR_PERSON;
    const isWithin = eventsCount === 0 || events.take(account, eventsCount, kept) >= 0;
    if (!isWithin) return refuse(principal, 'events', events.waitSeconds());
    if (changes > 0) refChanges.take(account, changes);
    return null;
  };
  const charge = (principal: Principal, points: number): RateRefusal | null => {
    const { account } = principal;
    if (principal.kind === 'session') {
      return persons.take(account, points) < 0 ? refuse(principal, 'person-points', persons.waitSeconds()) : null;
    }
    if (accounts.left(account) < points) return refuse(principal, 'account-points', accounts.waitSeconds());
    if (tokens.take(principal.tokenId, points) < 0) return refuse(principal, 'token-points', tokens.waitSeconds());
    accounts.take(account, points);
    return null;
  };
  return {
    counts: [accounts, tokens, persons, events, refChanges],
    charge,
    refuse,
    enter(principal, points) {
      const leave = running.enter(principal);
      if (leave === null) return refuse(principal, 'at-once', AT_ONCE_WAIT_SECONDS);
      const refused = charge(principal, points);
      if (refused === null) return { rate: rateOf(principal), leave };
      leave();
      return refused;
    },
    record: (principal, changes) => record(principal, 1, changes),
    recordRefs: (principal, changes) => record(principal, 0, changes),
    recordBody: (principal, bytes) => record(principal, Math.floor(bytes / RECORDED_BODY_BYTES), 0),
  };
}

/** What the change of a ref counts in `record`, also one whose name is refused. */
export function refChangesOf(name: string): number {
  return 1 + Math.floor(utf8Length(name) / REF_CHANGE_NAME_BYTES);
}

/** Requests under way, of accounts by their tokens and of their persons. */
function createRunning(): { enter(principal: Principal): (() => void) | null } {
  const byTokens = new Map<AccountId, number>();
  const byPersons = new Map<AccountId, number>();
  let total = 0;
  return {
    enter({ kind, account }) {
      const isPerson = kind === 'session';
      const counts = isPerson ? byPersons : byTokens;
      const own = counts.get(account) ?? 0;
      const tight = isPerson || total >= REQUESTS_AT_ONCE_ROOMY_MAX;
      if (own >= (tight ? ACCOUNT_REQUESTS_AT_ONCE_TIGHT_MAX : ACCOUNT_REQUESTS_AT_ONCE_MAX)) return null;
      counts.set(account, own + 1);
      total += 1;
      let left = false;
      return () => {
        if (left) return;
        left = true;
        total -= 1;
        const rest = (counts.get(account) ?? 0) - 1;
        if (rest > 0) counts.set(account, rest);
        else counts.delete(account);
      };
    },
  };
}
