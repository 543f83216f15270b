/**
 * A visit: one request to the website, as the pages see it.
 *
 * Invariants: a page learns who asks only from its visit. A form's token is made only for a page that shows a form,
 * since making it may set a cookie.
 */
import type { LogPosition } from '../../../core/kernel/envelope.ts';
import type { AccountId, Timestamp } from '../../../core/kernel/ids.ts';
import type { OwnedBy } from '../../../core/use-cases/callers/permission.ts';
import type { SessionPrincipal } from '../../../core/use-cases/callers/principal.ts';
import type { Origin } from '../../front-door/admission.ts';
import type { Flash } from './answer.ts';

/** Who is signed in. */
export interface SignedIn {
  readonly account: AccountId;
  readonly username: string;
  readonly principal: SessionPrincipal;
  /** The public id of the session, for the list of sessions. It lets nobody in. */
  readonly session: string;
  /** Whether pages lead to storage buckets: the plan allows them, or the account has some. */
  readonly hasStorage: boolean;
}

/** Who is signed in to a closed account. They may only reopen it. */
export interface SignedInToClosed {
  readonly account: AccountId;
  readonly username: string;
  readonly epoch: number;
  readonly eraseAt: Timestamp;
}

/** Who presented the right password and still has to present a second factor. */
export interface PendingSignIn {
  readonly account: AccountId;
  readonly epoch: number;
  /** Where the person wanted to go: a path of this site. */
  readonly next: string;
  readonly expiresAt: Timestamp;
}

export interface NavigationLink {
  readonly label: string;
  readonly path: string;
  /** Pages elsewhere that belong to it. */
  readonly also?: readonly string[];
}

/** The headers of a request that ask for a part or a version. */
export type Conditions = Readonly<Partial<Record<'range' | 'if-range' | 'if-none-match', string | undefined>>>;

export interface Visit {
  /** At most one of these three is not null. */
  readonly person: SignedIn | null;
  readonly closed: SignedInToClosed | null;
  readonly pending: PendingSignIn | null;
  /** The requested address, on the site's own origin. Names in paths are in `params`, decoded. */
  readonly url: URL;
  /** The named parts of the route's path, decoded; `*` is the rest. */
  readonly params: Readonly<Record<string, string | undefined>>;
  /** The path and query as the client sent them, for names that are not UTF-8. */
  readonly target: string;
  readonly requestId: string;
  readonly now: Timestamp;
  /** A message from the page before. */
  readonly flash: Flash | null;
  readonly navigation: readonly NavigationLink[];
  /** The addresses of the API and of the site, without a trailing slash. */
  readonly baseUrl: string;
  readonly webUrl: string;
  /** Whether strangers may make accounts. */
  readonly signUpOpen: boolean;
  /** Aborted when the browser goes away: what is made for the page need not be finished. */
  readonly signal: AbortSignal;
  /** The address that the request came from. */
  readonly address: string;
  /** The User-Agent header, cut to `USER_AGENT_LENGTH_MAX`; null without one. */
  readonly agent: string | null;
  /** Which parts and versions of a file the request asks for (RFC 9110, sections 13 and 14). */
  readonly conditions: Conditions;
  /** Whether the browser holds the cookie of an earlier sign-in, to whatever account. It proves nothing yet. */
  readonly mayBeKnown: boolean;
  /** Returns an id of the browser if somebody signed in to the account with it before, else null. */
  knownBrowser(account: AccountId): string | null;
  /** Returns the token that every form of this page carries. */
  csrf(): string;
  readonly session: VisitSession;
}

/** A visit of somebody who is signed in. */
export interface PersonVisit extends Visit {
  readonly person: SignedIn;
  /** The log's head when the request arrived: what the page shows includes the events up to it. */
  readonly position: LogPosition;
  /**
   * Returns the origin of a change that the person makes, for use cases. An append is refused if the session ended
   * before it. `repository` is what the change is about, null for the account.
   */
  origin(repository: OwnedBy | null): Promise<Origin>;
}

/** The session of the browser. Each call that lets somebody in gives the browser a new session id. */
export interface VisitSession {
  signIn(to: SessionStart): Promise<void>;
  /** Remembers for `PENDING_SIGN_IN_SPAN_MS` that the password was right. */
  awaitSecondFactor(to: SessionStart & { readonly next: string }): Promise<void>;
  signOut(): Promise<void>;
  /** Returns a text that `keep` kept, such as a challenge; null without one. */
  kept(name: string): string | null;
  /** Keeps a short text until the session's id changes; null removes it. Throws for who is not known at all. */
  keep(name: string, text: string | null): Promise<void>;
}

export interface SessionStart {
  readonly account: AccountId;
  /** The account's session epoch as the caller read it. */
  readonly epoch: number;
}
