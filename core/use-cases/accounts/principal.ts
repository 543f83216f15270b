/**
 * The caller of a request: the account it acts in, what it may do there, and the actor that events name.
 *
 * Must stay true: everything that depends on the kind of caller is here, in switches without a default. So a new kind
 * does not compile until it has an actor, grants, a selection of repositories and a reader to count its reads under.
 */
import type { RepositorySelection } from '../../access-token/repository-selection.ts';
import type { ActiveAccessToken } from '../../access-token/state.ts';
import type { Grant } from '../../kernel/grants.ts';
import type { Actor } from '../../kernel/envelope.ts';
import type { AccessTokenId, AccountId } from '../../kernel/ids.ts';
import type { Reader } from '../../usage/events.ts';
import type { StreamGuard } from '../../ports/event-store.ts';

/** An access token that was valid when it was read. `guard` holds the revision of its stream at that time. */
export interface AccessTokenPrincipal {
  readonly kind: 'access-token';
  readonly account: AccountId;
  readonly tokenId: AccessTokenId;
  readonly token: ActiveAccessToken;
  readonly guard: StreamGuard;
}

export type Principal = AccessTokenPrincipal;

/** Returns the actor that events name for the caller. */
export function actorOf(principal: Principal): Actor {
  switch (principal.kind) {
    case 'access-token':
      return { kind: 'token', id: principal.tokenId };
  }
}

export function grantsOf(principal: Principal): readonly Grant[] {
  switch (principal.kind) {
    case 'access-token':
      return principal.token.grants;
  }
}

/** Returns the repositories of its account that the caller may use. */
export function selectionOf(principal: Principal): RepositorySelection {
  switch (principal.kind) {
    case 'access-token':
      return principal.token;
  }
}

/** Returns the reader under which `TransferRecorded` counts the bytes that the caller reads. */
export function readerOf(principal: Principal): Reader {
  switch (principal.kind) {
    case 'access-token':
      return { kind: 'token', id: principal.tokenId };
  }
}
