/**
 * Makes the visit of a request: who asks, with which session, and the message of the page before.
 *
 * Invariants: a session counts only if its account can be entered and has the session's epoch, as of the log's head
 * when the request arrived. So a change of the password ends every other session on every node at its next request.
 */
import type { IncomingHttpHeaders } from 'node:http';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { LOG_START, type LogPosition } from '../../../core/kernel/envelope.ts';
import type { StoredSession } from '../../../core/ports/session-store.ts';
import { identifyPerson, type Person } from '../../../core/use-cases/callers/authenticate.ts';
import { originOf, upToDate } from '../../front-door/admission.ts';
import { closedSignal } from '../../front-door/closed-signal.ts';
import type { SiteContext } from '../context.ts';
import { localPath } from '../layout/answer.ts';
import type { NavigationLink, PersonVisit, SignedIn, SignedInToClosed, Visit } from '../layout/visit.ts';
import { agentOf, noteSeen, sessionOf } from './browser-sessions.ts';
import type { Cookies } from './cookies.ts';
import { takeFlash } from './flash.ts';
import { knownBrowser } from './known-browser.ts';

export interface VisitMaking {
  readonly context: SiteContext;
  readonly cookies: Cookies;
  /** The links of the rooms, for who is signed in. */
  readonly navigation: (person: SignedIn) => readonly NavigationLink[];
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Null until the sender is identified. */
    identity: Identity | null;
  }
}

export interface Identity {
  readonly session: StoredSession | null;
  readonly known: Person | null;
  readonly position: LogPosition;
}

export const STRANGER: Identity = { session: null, known: null, position: LOG_START };

/** Finds out who the request's session belongs to. Removes a session that has ended, and its cookie. */
export async function identifyVisitor(
  context: SiteContext,
  cookies: Cookies,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<Identity> {
  const session = request.session.stored ?? null;
  const sent = request.cookies[cookies.names.session] !== undefined;
  if (session === null) {
    if (sent) reply.clearCookie(cookies.names.session, cookies.attributes);
    return STRANGER;
  }
  const position = await upToDate(context);
  const known = await identifyPerson(context, session);
  if (known === null) {
    await sessionOf(context, cookies, request, reply).signOut();
    return STRANGER;
  }
  await noteSeen(context, request);
  return { session, known, position };
}

/** Makes the visit of a request whose sender is identified. */
export function visitOf(making: VisitMaking, request: FastifyRequest, reply: FastifyReply, identity: Identity): Visit {
  const { context, cookies, navigation } = making;
  const { baseUrl, webUrl } = context.addresses();
  const person = signedIn(context, identity);
  let token: string | null = null;
  return {
    person,
    closed: signedInToClosed(identity),
    pending: pendingSignIn(identity),
    url: URL.parse(request.originalUrl, webUrl) ?? new URL(webUrl),
    params: parseParams(request),
    target: request.originalUrl,
    requestId: request.id,
    now: context.clock.now(),
    flash: takeFlash(cookies, request, reply),
    navigation: person === null ? [] : navigation(person),
    baseUrl,
    webUrl,
    signUpOpen: context.signUpOpen,
    signal: closedSignal(reply.raw),
    address: context.clientAddress(request.raw),
    agent: agentOf(request.raw.headers['user-agent']),
    conditions: conditionsOf(request.raw.headers),
    mayBeKnown: request.cookies[cookies.names.browser] !== undefined,
    knownBrowser: (account) => knownBrowser({ formKey: context.formKey, cookies }, request, account),
    csrf: () => (token ??= reply.generateCsrf({ userInfo: formOwner(request) })),
    session: sessionOf(context, cookies, request, reply),
  };
}

function conditionsOf(headers: IncomingHttpHeaders): Visit['conditions'] {
  const { range, 'if-none-match': noneMatch, 'if-range': ifRange } = headers;
  return { range, 'if-none-match': noneMatch, 'if-range': ifRange?.toString() };
}

/** Adds to a visit what only somebody who is signed in has. */
export function personVisit(
  { context }: VisitMaking,
  request: FastifyRequest,
  visit: Visit & { readonly person: SignedIn },
  position: LogPosition,
): PersonVisit {
  const requirement = { grant: null, scope: null, onItself: false };
  const { principal } = visit.person;
  return {
    ...visit,
    position,
    origin: (repository) =>
      originOf(context, request.raw, request.id, { principal, requirement, id: '', repository, door: 'website' }),
  };
}

/** Whom a form's token is made for: the session, so that a token of one session does not pass in another. */
export function formOwner(request: FastifyRequest): string {
  return request.session.stored?.handle ?? 'stranger';
}

function signedIn({ plans }: Pick<SiteContext, 'plans'>, { session, known }: Identity): SignedIn | null {
  if (session?.status !== 'signed-in' || known?.status !== 'open') return null;
  const { principal, plan, hasBuckets } = known;
  const { account, username } = principal;
  const hasStorage = plans[plan].byo_storage || hasBuckets;
  return { account, username, principal, session: session.handle, hasStorage };
}

function signedInToClosed({ session, known }: Identity): SignedInToClosed | null {
  if (session?.status !== 'signed-in' || known?.status !== 'closed') return null;
  const { account, username, epoch, eraseAt } = known;
  return { account, username, epoch, eraseAt };
}

function pendingSignIn({ session, known }: Identity): Visit['pending'] {
  if (session?.status !== 'pending' || known === null) return null;
  const { account, epoch, kept, expiresAt } = session;
  return { account, epoch, next: localPath(kept['next'] ?? '') ?? '/', expiresAt };
}

/** The router gives every parameter as a text. */
function parseParams({ params }: FastifyRequest): Visit['params'] {
  return params as Visit['params'];
}
