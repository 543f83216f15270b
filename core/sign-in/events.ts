/**
 * Events of people who sign in and out, on `signIn-<account>-<day>`.
 *
 * Invariants: the events are operational, because a stranger can cause any number of them. Whole streams are pruned
 * after retention, which is why each stream ends with its day. The envelope refers to the source address.
 */
import { type DomainEvent, type EventKind, type EventKinds, OPERATIONAL_V1 } from '../kernel/decider.ts';
import type { JsonObject } from '../kernel/json.ts';

/** What a person presented to sign in. */
export type Factor = 'password' | 'totp' | 'passkey';

type SignedIn = DomainEvent<
  'SignedIn',
  {
    /** In the order in which the person presented them. */
    readonly factors: readonly Factor[];
    /** A vault reference. Null if the request named no user agent. */
    readonly user_agent_ref: string | null;
  }
>;

type SignInFailed = DomainEvent<
  'SignInFailed',
  {
    /** The factor that was wrong. */
    readonly factor: Factor;
    /** `password-wrong`, or the code of the refusal of a second factor; null if an older version wrote it. */
    readonly reason: string | null;
    readonly user_agent_ref: string | null;
  }
>;

/** Upcasts version 1, which said no reason. */
function withoutKnownReason(data: JsonObject): JsonObject {
  return { ...data, reason: null };
}

/** Writes version 1. */
function withoutReason(data: JsonObject): JsonObject {
  const { reason: _, ...failure } = data;
  return failure;
}

const SIGN_IN_FAILED: EventKind = {
  version: 2,
  record: false,
  upcasters: [withoutKnownReason],
  downcasters: [withoutReason],
};

/** The person ended the session of the browser that they used. */
type SignedOut = DomainEvent<'SignedOut', { readonly session_id: string }>;

/** The person ended sessions of other browsers, or of this one, in the list of sessions. */
type SessionsRevoked = DomainEvent<
  'SessionsRevoked',
  {
    /** The ids by which the list names them, which let nobody in. */
    readonly session_ids: readonly string[];
  }
>;

export type SignInEvent = SignedIn | SignInFailed | SignedOut | SessionsRevoked;

export const signInEventKinds: EventKinds<SignInEvent> = {
  SignedIn: OPERATIONAL_V1,
  SignInFailed: SIGN_IN_FAILED,
  SignedOut: OPERATIONAL_V1,
  SessionsRevoked: OPERATIONAL_V1,
};
