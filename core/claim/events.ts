/**
 * Claims keep names unique across accounts. Their streams are `username-<name>` and `email-<HMAC under a vault key>`.
 *
 * Invariants: a name belongs to the account of the last `Claimed` that was not `Released`. A claim without
 * `Confirmed` may be taken over after its time, if nobody can create its account any more.
 */
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../kernel/decider.ts';

export type Claimed = DomainEvent<'Claimed', { readonly account: string; readonly until: string }>;
export type Confirmed = DomainEvent<'Confirmed', { readonly account: string }>;
export type Released = DomainEvent<'Released', { readonly account: string }>;

export type ClaimEvent = Claimed | Confirmed | Released;

export const claimEventKinds: EventKinds<ClaimEvent> = {
  Claimed: RECORD_V1,
  Confirmed: RECORD_V1,
  Released: RECORD_V1,
};
