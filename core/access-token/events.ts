/**
 * Events of an access token, on `accessToken-<id>`.
 *
 * Must stay true: no event holds the secret itself. `secret_hash` is the SHA-256 of at least 238 bits of entropy, so it
 * needs no slow hash. The token's id is derived from it.
 */
import { type DomainEvent, type EventKinds, RECORD_V1 } from '../kernel/decider.ts';
import type { Grant, Scope } from '../kernel/grants.ts';

export type AccessTokenCreated = DomainEvent<
  'AccessTokenCreated',
  {
    readonly account: string;
    readonly name: string;
    readonly scope: Scope;
    readonly grants: readonly Grant[];
    readonly repository_ids: readonly string[];
    /** RFC 3339, or null for a token that never expires. */
    readonly expires_at: string | null;
    /** SHA-256 of the secret's text, hex. */
    readonly secret_hash: string;
    /** `strata_` and the first four characters of the secret, so that people can tell their tokens apart. */
    readonly token_prefix: string;
  }
>;

/** Holds only the members that changed. */
export type AccessTokenUpdated = DomainEvent<
  'AccessTokenUpdated',
  {
    readonly name?: string;
    readonly scope?: Scope;
    readonly grants?: readonly Grant[];
    readonly repository_ids?: readonly string[];
    readonly expires_at?: string | null;
  }
>;

export type AccessTokenRevoked = DomainEvent<'AccessTokenRevoked', { readonly reason: 'deleted' }>;

export type AccessTokenEvent = AccessTokenCreated | AccessTokenUpdated | AccessTokenRevoked;

export const accessTokenEventKinds: EventKinds<AccessTokenEvent> = {
  AccessTokenCreated: RECORD_V1,
  AccessTokenUpdated: RECORD_V1,
  AccessTokenRevoked: RECORD_V1,
};
