/**
 * Binds the routes of rooms to Fastify: identifies the sender, checks forms, runs the handler and sends its answer.
 *
 * Invariants: the checks have one order. A form of another site is refused first, then who sends it is identified,
 * then its token is checked, and its handler runs last. A page for a person is never run for a stranger.
 */
import { Readable } from 'node:stream';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { usernameRefusal } from '../../core/account/names.ts';
import type { AccountId } from '../../core/kernel/ids.ts';
import { BODY_IDLE_MS, REQUEST_POINTS } from '../../core/kernel/limits.ts';
import { asciiLowerCase } from '../../core/kernel/text.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import { enter } from '../front-door/admission.ts';
import { heldBody } from '../front-door/body-budget.ts';
import { answerLate, LATE_BODY_TEXT, limitBodySpan } from '../front-door/body-span.ts';
import type { RateRefusal } from '../front-door/callers.ts';
import { refusedChange } from '../front-door/changes.ts';
import type { HeldRefusal } from '../front-door/held-bytes.ts';
import { holdUnsent } from '../front-door/unsent-budget.ts';
import { compressedPage } from './compressed-pages.ts';
import type { SiteContext } from './context.ts';
import { nextPath, redirectTo, type SiteAnswer } from './layout/answer.ts';
import { type Fields, NO_FIELDS, SentForm } from './layout/forms.ts';
import { methodNotAllowed, notFound, tooOften } from './layout/problems.ts';
import type { FormOptions, Room, Site } from './layout/room.ts';
import type { PersonVisit, SignedIn, Visit } from './layout/visit.ts';
import { FORM_BYTES_MAX } from './limits.ts';
import { heldBytesOf, pageStream } from './page-stream.ts';
import { CrossSiteForm, isCrossSite } from './sessions/cross-site.ts';
import { leaveFlash } from './sessions/flash.ts';
import { identifyVisitor, personVisit, STRANGER, type VisitMaking, visitOf } from './sessions/visits.ts';

export interface Serving extends VisitMaking {
  /** A form that takes longer to arrive ends its connection. */
  readonly bodySpanMs: number;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** What the route of a form says of it. */
    readonly form?: FormOptions;
  }
}

type Run = (request: FastifyRequest, reply: FastifyReply) => Promise<SiteAnswer>;

/** Where a closed account can be reopened: the only page for who signed in to it. */
const REOPEN = '/sign-in/reopen';

/** Registers the routes of the rooms, and for the other methods of their paths the page that says so. */
export function registerRooms(serving: Serving, app: FastifyInstance, rooms: readonly Room[]): void {
  const taken = new Map<string, string[]>();
  const site = siteOf(serving, app, (path, methods) => taken.set(path, [...(taken.get(path) ?? []), ...methods]));
  for (const room of rooms) room.routes(site);
  for (const [path, methods] of taken) refuseOtherMethods(serving, app, path, methods);
}

function siteOf(
  serving: Serving,
  app: FastifyInstance,
  take: (path: string, methods: readonly string[]) => void,
): Site {
  const identify = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply | undefined> => {
    request.identity = await identifyVisitor(serving.context, serving.cookies, request, reply);
    const { known } = request.identity;
    if (known?.status !== 'open') return undefined;
    const points = request.method === 'POST' ? REQUEST_POINTS.costly : REQUEST_POINTS.page;
    const entered = enter(serving.context, reply.raw, known.principal, points);
    if (!('exceeded' in entered)) return undefined;
    // The body is not read, so the connection cannot be used again.
    if (request.method === 'POST') reply.header('connection', 'close');
    return send(serving, reply, tooOften(currentVisit(serving, request, reply), entered));
  };
  const get = (path: string, run: Run): void => {
    take(path, ['GET', 'HEAD']);
    app.get(path, { onRequest: identify }, async (request, reply) => {
      const hasFlash = request.cookies[serving.cookies.names.flash] !== undefined;
      return send(serving, reply, await compressedPage(request, await run(request, reply), hasFlash));
    });
  };
  const post = (path: string, form: FormOptions, run: Run): void => {
    take(path, ['POST']);
    const options = {
      bodyLimit: form.bytesMax ?? FORM_BYTES_MAX,
      config: { form },
      onRequest: [async (request: FastifyRequest) => refuseCrossSite(serving, request), identify],
      preParsing: async (request: FastifyRequest, reply: FastifyReply) => boundForm(serving, request, reply),
      preHandler: app.csrfProtection,
    };
    app.post(path, options, async (request, reply) => send(serving, reply, await run(request, reply)));
  };
  const publicly = (handler: (visit: Visit, fields: Fields) => Promise<SiteAnswer>): Run => {
    return (request, reply) => handler(currentVisit(serving, request, reply), fieldsSent(request));
  };
  const personally = (
    handler: (visit: PersonVisit, fields: Fields) => Promise<SiteAnswer>,
    beyondQuota = false,
  ): Run => {
    return async (request, reply) => {
      const visit = currentVisit(serving, request, reply);
      if (!isPersons(visit)) return canExist(visit) ? wayIn(visit, request.method) : notFound(visit);
      if (request.method === 'POST') {
        const { principal } = visit.person;
        const used = beyondQuota ? null : await refusedChange(serving.context, principal);
        const refusal = used ?? recordForm(serving, principal, request);
        if (refusal !== null) return tooOften(visit, refusal);
      }
      const { position } = request.identity ?? STRANGER;
      return handler(personVisit(serving, request, visit, position), fieldsSent(request));
    };
  };
  return {
    context: serving.context,
    page: (path, handler) => get(path, personally(handler)),
    form: (path, handler, options = {}) => post(path, options, personally(handler)),
    formBeyondQuota: (path, handler, options = {}) => post(path, options, personally(handler, true)),
    publicPage: (path, handler) => get(path, publicly(handler)),
    publicForm: (path, handler, options = {}) => post(path, options, publicly(handler)),
  };
}

/** Counts a form that a person sent. */
function recordForm({ context }: Serving, principal: Principal, { headers }: FastifyRequest): RateRefusal | null {
  // Browsers say how long a form is.
  const bytes = Number(headers['content-length'] ?? FORM_BYTES_MAX);
  return context.callers.record(principal, 0) ?? context.callers.recordBody(principal, bytes);
}

/** Answers before the body is read, and ends the connection, since a body that nobody wants may never end. */
function refuseOtherMethods(serving: Serving, app: FastifyInstance, path: string, taken: readonly string[]): void {
  const refuse = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    request.identity = await identifyVisitor(serving.context, serving.cookies, request, reply);
    const visit = currentVisit(serving, request, reply);
    if (request.method !== 'GET' && request.method !== 'HEAD') reply.header('connection', 'close');
    return send(serving, reply, canExist(visit) ? methodNotAllowed(visit, taken) : notFound(visit));
  };
  const method = app.supportedMethods.filter((name) => !taken.includes(name));
  app.route({ method, url: path, onRequest: refuse, handler: refuse });
}

/**
 * Answers a request that no route takes, before its body is read: a body that nobody wants may never end, so the
 * connection ends with the answer.
 */
export function answerNotFound(serving: Serving, app: FastifyInstance, rooms: readonly Room[]): void {
  app.addHook('onRequest', async (request, reply) => {
    if (!request.is404) return undefined;
    request.identity = await identifyVisitor(serving.context, serving.cookies, request, reply);
    const visit = currentVisit(serving, request, reply);
    if (request.method === 'GET' || request.method === 'HEAD') {
      return send(serving, reply, (await missingPage(serving, request, visit, rooms)) ?? notFound(visit));
    }
    reply.header('connection', 'close');
    return send(serving, reply, notFound(visit));
  });
  // Without a handler of its own the instance would not run its hooks for these requests.
  app.setNotFoundHandler(() => {
    throw new TypeError('The hook above answers');
  });
}

/** Returns what a room says of an address of its own where there is no page; null for strangers. */
async function missingPage(
  serving: Serving,
  request: FastifyRequest,
  visit: Visit,
  rooms: readonly Room[],
): Promise<SiteAnswer | null> {
  if (!isPersons(visit)) return null;
  const { position } = request.identity ?? STRANGER;
  for (const { missing } of rooms) {
    const answer = (await missing?.(serving.context, personVisit(serving, request, visit, position))) ?? null;
    if (answer !== null) return answer;
  }
  return null;
}

/** Makes the visit of a request; of a stranger if the sender was not identified. */
export function currentVisit(serving: Serving, request: FastifyRequest, reply: FastifyReply): Visit {
  return visitOf(serving, request, reply, request.identity ?? STRANGER);
}

function isPersons(visit: Visit): visit is Visit & { readonly person: SignedIn } {
  return visit.person !== null;
}

/** Returns false for the pages of an account whose name no account can have: signing in would lead nowhere. */
function canExist({ params: { username } }: Visit): boolean {
  return username === undefined || usernameRefusal(asciiLowerCase(username)) === null;
}

/** Sends somebody who is not signed in to where they can be, and from there back to the page. */
function wayIn(visit: Visit, method: string): SiteAnswer {
  if (visit.closed !== null) return redirectTo(REOPEN);
  if (visit.pending !== null) return redirectTo('/sign-in/verify-mfa');
  // The address of a form need not have a page.
  const next = method === 'POST' ? null : nextPath(`${visit.url.pathname}${visit.url.search}`);
  return redirectTo(next === null ? '/sign-in' : `/sign-in?next=${encodeURIComponent(next)}`);
}

function refuseCrossSite({ context }: Serving, { headers }: FastifyRequest): void {
  const fetchSite = headers['sec-fetch-site'];
  const sender = {
    origin: headers.origin,
    fetchSite: Array.isArray(fetchSite) ? fetchSite.join() : fetchSite,
    host: headers.host,
  };
  if (isCrossSite(sender, context.addresses().webUrl)) throw new CrossSiteForm();
}

/** A form that is sent in parts is held as it arrives, as a whole and as its parts. */
const PARTS_HELD_FACTOR = 3;

/** Bounds the time that the form takes to arrive, and holds the memory for it. */
function boundForm({ context, bodySpanMs }: Serving, request: FastifyRequest, reply: FastifyReply): Readable {
  const exchange = { request: request.raw, response: reply.raw };
  limitBodySpan(exchange, bodySpanMs, () => {
    reply.hijack();
    answerLate(request.raw, reply.raw, { contentType: 'text/plain; charset=utf-8', body: `${LATE_BODY_TEXT}\n` });
  });
  const { form } = request.routeOptions.config;
  return heldBody(context, exchange, accountOf(request), form?.parts === true ? PARTS_HELD_FACTOR : 1);
}

/** Returns the fields of the request's form; none for a page. */
export function fieldsSent({ body }: FastifyRequest): Fields {
  if (typeof body !== 'object' || body === null || !('form' in body)) return NO_FIELDS;
  return body.form instanceof SentForm ? body.form.fields : NO_FIELDS;
}

export function send(
  { context, cookies }: Pick<Serving, 'context' | 'cookies'>,
  reply: FastifyReply,
  answer: SiteAnswer,
): FastifyReply {
  switch (answer.kind) {
    case 'page': {
      const headers = { ...answer.headers, 'content-type': 'text/html; charset=utf-8' };
      const heldBytes = heldBytesOf(answer.html);
      const body = heldBytes === null ? answer.html.markup() : pageStream(answer.html);
      return sendBody(context, reply, { ...answer, headers, body, heldBytes: heldBytes ?? 0 });
    }
    case 'redirect':
      if (answer.flash !== null) leaveFlash(cookies, reply, answer.flash);
      return reply.redirect(answer.path, answer.status);
    case 'content':
      return sendBody(context, reply, answer);
  }
}

type Body = Pick<Extract<SiteAnswer, { readonly kind: 'content' }>, 'status' | 'headers' | 'body' | 'heldBytes'>;

function sendBody(
  context: SiteContext,
  reply: FastifyReply,
  { status, headers, body: whole, heldBytes = 0 }: Body,
): FastifyReply {
  const body = reply.request.method === 'HEAD' ? withoutReading(whole) : whole;
  const isStream = body instanceof Readable;
  const refusal = hold(context, reply, isStream ? heldBytes : body);
  if (refusal !== null) {
    if (isStream) body.destroy();
    return refuseUnsent(reply, refusal);
  }
  // A client that stops reading must not keep open what a stream reads from.
  if (isStream) reply.raw.setTimeout(BODY_IDLE_MS, () => reply.raw.destroy());
  return reply.code(status).headers(headers).send(body);
}

/** Nothing is read, or made by git, for who asks for the headers alone. */
function withoutReading(body: Extract<SiteAnswer, { readonly kind: 'content' }>['body']): typeof body {
  if (!(body instanceof Readable)) return body;
  body.destroy();
  return Readable.from([]);
}

/** Holds the memory for an answer that its client may read slowly. */
function hold({ unsentBudget, clientAddress }: SiteContext, reply: FastifyReply, bytes: Buffer | string | number) {
  const account = accountOf(reply.request);
  const caller = account === null ? { address: clientAddress(reply.request.raw) } : { account };
  return holdUnsent(unsentBudget, reply.raw, caller, bytes);
}

function refuseUnsent(reply: FastifyReply, { status, text, waitSeconds }: HeldRefusal): FastifyReply {
  reply.code(status).header('retry-after', waitSeconds).type('text/plain; charset=utf-8');
  return reply.send(`${text}\n`);
}

/** Whose account the sender has signed in to, open or closed; null for a stranger. */
function accountOf({ identity }: FastifyRequest): AccountId | null {
  const known = identity?.known ?? null;
  if (known === null) return null;
  return known.status === 'open' ? known.principal.account : known.account;
}
