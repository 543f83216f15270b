/**
 * Events of an access token, on `accessToken-<id>`.
 *
 * Invariants: no event holds the secret itself. `secret_hash` is the SHA-256 of at least 238 bits of entropy, or of
 * 107 bits for a token of 15 minutes, so it needs no slow hash. The id of a created token is derived from it.
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

/**
 * An identity token was exchanged for this access token. Its id is derived from the identity token's issuer and `jti`,
 * or from its issuer and what that signed. It ends with `expires_at`, and with the next change of its trust rule.
 */
export type AccessTokenExchanged = DomainEvent<
  'AccessTokenExchanged',
  {
    readonly account: string;
    readonly trust_rule_id: string;
    /** The number of changes that the rule had seen. */
    readonly rule_epoch: number;
    /** A vault reference of the identity token's subject (docs/architecture.md, invariant 5). */
    readonly subject_ref: string;
    readonly scope: Scope;
    readonly grants: readonly Grant[];
    readonly repository_ids: readonly string[];
    readonly expires_at: string;
    readonly secret_hash: string;
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

export type AccessTokenEvent = AccessTokenCreated | AccessTokenExchanged | AccessTokenUpdated | AccessTokenRevoked;

export const accessTokenEventKinds: EventKinds<AccessTokenEvent> = {
  AccessTokenCreated: RECORD_V1,
  AccessTokenExchanged: RECORD_V1,
  AccessTokenUpdated: RECORD_V1,
  AccessTokenRevoked: RECORD_V1,
};
