/**
 * Connects the browser's cookie with the stored session: @fastify/session makes the ids and cookies, and the store of
 * sessions keeps everything else.
 *
 * Invariants: a session is stored only when somebody presented the right password, never for a stranger. The id
 * changes whenever somebody is let in, and the former id lets nobody in from then on. A request that was under way
 * while its session was revoked does not bring the session back.
 */
import fastifyCookie from '@fastify/cookie';
import fastifySession from '@fastify/session';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { type AccountId, plusMs, type Timestamp } from '../../../core/kernel/ids.ts';
import { USER_AGENT_LENGTH_MAX } from '../../../core/kernel/limits.ts';
import { parseVaultRef, type VaultRef } from '../../../core/kernel/vault-ref.ts';
import type { StoredSession } from '../../../core/ports/session-store.ts';
import { VaultError } from '../../../core/ports/vault.ts';
import type { SiteContext } from '../context.ts';
import type { SessionStart, VisitSession } from '../layout/visit.ts';
import type { Cookies } from './cookies.ts';
import { rememberBrowser } from './known-browser.ts';

/** The time from a right password to the second factor. */
export const PENDING_SIGN_IN_SPAN_MS = 5 * 60_000;
/** A browser's session ends this long after the sign-in, or when it was not used for the idle span. */
export const SESSION_SPAN_MS = 30 * 24 * 60 * 60_000;
export const SESSION_IDLE_SPAN_MS = 14 * 24 * 60 * 60_000;
/** How often the use of a session is noted at most. Internal: it is the pace of notes of use. */
const SESSION_SEEN_INTERVAL_MS = 10 * 60_000;
/** What steps of a sign-in keep in one session, in UTF-16 code units of its JSON. */
export const SESSION_KEPT_LENGTH_MAX = 4_096;

declare module 'fastify' {
  interface Session {
    /** The stored session of this browser; absent for a stranger. */
    stored?: StoredSession;
  }
}

/** The form of the ids that @fastify/session makes: 24 random bytes. */
const SESSION_ID = /^[A-Za-z0-9_-]{32}$/;

/** Registers cookies and sessions on the instance whose routes are pages. */
export function registerSessions(app: FastifyInstance, context: SiteContext, cookies: Cookies): void {
  const { sessions, digest, clock } = context;
  app.register(fastifyCookie);
  app.register(fastifySession, {
    cookieName: cookies.names.session,
    cookie: { ...cookies.attributes, maxAge: SESSION_SPAN_MS },
    // An id is random and looked up by its digest, so a signature would add nothing.
    secret: { sign: (id) => id, unsign: (id) => ({ valid: SESSION_ID.test(id), renew: false, value: id }) },
    saveUninitialized: false,
    rolling: false,
    store: {
      // `sessionOf` writes: it knows a new session from a changed one.
      set: (_id, _session, done) => done(),
      destroy: (_id, done) => done(),
      get: (id, done) => {
        sessions.find(digest.sha256(id), clock.now()).then(
          (stored) => done(null, stored === null ? null : { cookie: { originalMaxAge: SESSION_SPAN_MS }, stored }),
          (error: unknown) => done(error),
        );
      },
    },
  });
}

/** The operations on the session of a request's browser. */
export function sessionOf(
  context: SiteContext,
  cookies: Cookies,
  request: FastifyRequest,
  reply: FastifyReply,
): VisitSession {
  const start = async (
    { account, epoch }: SessionStart,
    status: StoredSession['status'],
    kept: StoredSession['kept'],
  ): Promise<void> => {
    const now = context.clock.now();
    const former = request.session.stored ?? null;
    await request.session.regenerate();
    const stored: StoredSession = {
      idHash: context.digest.sha256(request.session.sessionId),
      handle: context.ids.next(),
      account,
      epoch,
      status,
      kept,
      createdAt: now,
      seenAt: now,
      expiresAt: plusMs(now, status === 'pending' ? PENDING_SIGN_IN_SPAN_MS : SESSION_IDLE_SPAN_MS),
      ...(await seenFrom(context, request, account)),
    };
    await context.sessions.add(stored);
    if (former !== null) await context.sessions.remove(former.idHash);
    request.session.stored = stored;
    // Forms that were made before belong to who was signed in before.
    reply.clearCookie(cookies.names.form, cookies.attributes);
  };
  return {
    async signIn(to) {
      await start(to, 'signed-in', {});
      rememberBrowser({ formKey: context.formKey, cookies }, request, reply, to.account);
    },
    awaitSecondFactor: ({ next, ...to }) => start(to, 'pending', { next }),
    async signOut() {
      const { stored } = request.session;
      if (stored !== undefined) await context.sessions.remove(stored.idHash);
      // The answer that follows is a stranger's.
      await request.session.regenerate();
      reply.clearCookie(cookies.names.session, cookies.attributes);
      reply.clearCookie(cookies.names.form, cookies.attributes);
    },
    kept: (name) => request.session.stored?.kept[name] ?? null,
    async keep(name, text) {
      const { stored } = request.session;
      if (stored === undefined) throw new TypeError('A stranger has no session to keep anything in');
      const { [name]: _former, ...others } = stored.kept;
      const kept = text === null ? others : { ...others, [name]: text };
      if (JSON.stringify(kept).length > SESSION_KEPT_LENGTH_MAX) throw new TypeError(`${name} is too long to keep`);
      request.session.stored = { ...stored, kept };
      await context.sessions.keep(stored.idHash, kept);
    },
  };
}

/** Notes at most every `SESSION_SEEN_INTERVAL_MS` when, where and with what browser the session was used. */
export async function noteSeen(context: SiteContext, request: FastifyRequest): Promise<void> {
  const { stored } = request.session;
  const now = context.clock.now();
  if (stored?.status !== 'signed-in' || plusMs(stored.seenAt, SESSION_SEEN_INTERVAL_MS) > now) return;
  const seen = await seenFrom(context, request, stored.account);
  const idle = plusMs(now, SESSION_IDLE_SPAN_MS);
  const last = plusMs(stored.createdAt, SESSION_SPAN_MS);
  request.session.stored = { ...stored, ...seen, seenAt: now, expiresAt: earlier(idle, last) };
  await context.sessions.noteSeen(request.session.stored);
}

function earlier(a: Timestamp, b: Timestamp): Timestamp {
  return a < b ? a : b;
}

async function seenFrom(
  context: SiteContext,
  { raw }: FastifyRequest,
  account: AccountId,
): Promise<Pick<StoredSession, 'addressRef' | 'agentRef'>> {
  const addressRef = await context.sourceAddressRef(account, context.clientAddress(raw));
  const agent = agentOf(raw.headers['user-agent']);
  return {
    addressRef: addressRef === null ? null : parseVaultRef(addressRef),
    agentRef: agent === null ? null : await unlessErased(context.vault.put(account, 'user-agent', agent)),
  };
}

/** An account may be erased while its request runs. */
async function unlessErased(putting: Promise<VaultRef>): Promise<VaultRef | null> {
  try {
    return await putting;
  } catch (error) {
    if (error instanceof VaultError && error.code === 'account-erased') return null;
    throw error;
  }
}

/** Returns the part of a User-Agent header that is kept; null without one. */
export function agentOf(header: string | undefined): string | null {
  return header === undefined || header === '' ? null : header.slice(0, USER_AGENT_LENGTH_MAX);
}
