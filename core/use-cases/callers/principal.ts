/**
 * The caller of a request: the account it acts in, what it may do there, and the actor that events name.
 *
 * Invariants: everything that depends on the kind of caller is here, in switches without a default. So a new kind
 * does not compile until it has an actor, grants and a selection of repositories.
 */
import { ALL_REPOSITORIES, type RepositorySelection } from '../../access-token/repository-selection.ts';
import type { ActiveAccessToken, ExchangedToken } from '../../access-token/state.ts';
import type { Grant } from '../../kernel/grants.ts';
import type { AccessTokenId, AccountId } from '../../kernel/ids.ts';
import type { StreamGuard } from '../../ports/event-store.ts';
import type { Used } from '../../ports/last-use.ts';
import type { Reader } from '../../usage/events.ts';

/** An access token that was valid when it was read. `guards` hold the revision of its stream at that time. */
export interface AccessTokenPrincipal {
  readonly kind: 'access-token';
  readonly account: AccountId;
  readonly tokenId: AccessTokenId;
  readonly token: ActiveAccessToken;
  readonly guards: readonly StreamGuard[];
}

/**
 * A person whose session was valid when it was read. `guard` holds the revision of the account's stream at that time,
 * so an append is refused if the account was closed or the session ended since.
 */
export interface SessionPrincipal {
  readonly kind: 'session';
  readonly account: AccountId;
  readonly username: string;
  /** The session epoch of the account in which the session began. */
  readonly epoch: number;
  readonly guard: StreamGuard;
}

/**
 * A token that an identity token was exchanged for, and that was valid when it was read. `guards` hold the revisions of
 * its stream and of the account's at that time: the account's stream tells whether its trust rule is still the same.
 */
export interface ExchangedTokenPrincipal {
  readonly kind: 'exchanged-token';
  readonly account: AccountId;
  readonly tokenId: AccessTokenId;
  readonly token: ExchangedToken;
  readonly guards: readonly StreamGuard[];
}

/** A caller that sent a token. */
export type TokenPrincipal = AccessTokenPrincipal | ExchangedTokenPrincipal;

export type Principal = TokenPrincipal | SessionPrincipal;

const ALL_GRANTS: readonly Grant[] = ['ALL'];

/** Returns the actor that events name for the caller, which is also the reader that `TransferRecorded` counts. */
export function actorOf(principal: Principal): Reader {
  switch (principal.kind) {
    case 'access-token':
      return { kind: 'token', id: principal.tokenId };
    case 'exchanged-token':
      return { kind: 'trust_rule', id: principal.token.trustRule.id };
    case 'session':
      return { kind: 'user', id: principal.account };
  }
}

/** Returns what the list of last uses counts the caller under. */
export function usedBy(principal: TokenPrincipal): Used {
  switch (principal.kind) {
    case 'access-token':
      return principal.tokenId;
    case 'exchanged-token':
      return principal.token.trustRule.id;
  }
}

export function grantsOf(principal: Principal): readonly Grant[] {
  switch (principal.kind) {
    case 'access-token':
    case 'exchanged-token':
      return principal.token.grants;
    case 'session':
      return ALL_GRANTS;
  }
}

/** Returns the repositories of its account that the caller may use. */
export function selectionOf(principal: Principal): RepositorySelection {
  switch (principal.kind) {
    case 'access-token':
    case 'exchanged-token':
      return principal.token;
    case 'session':
      return ALL_REPOSITORIES;
  }
}
