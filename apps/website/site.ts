/**
 * The website: pages for people, on a Fastify instance of its own beside the API's.
 *
 * Invariants: every answer carries the security headers and X-Request-Id, faults too. A form is refused if another
 * site sent it, and again if it lacks its token. A fault is answered with a page that shows nothing of it.
 */
import fastifyCsrf from '@fastify/csrf-protection';
import fastifyFormBody from '@fastify/formbody';
import fastifyHelmet from '@fastify/helmet';
import Fastify, { type FastifyError, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { EventId } from '../../core/kernel/ids.ts';
import { JSON_BODY_SPAN_MS } from '../../core/kernel/limits.ts';
import { formFault } from '../front-door/request-form.ts';
import { routableTarget } from '../front-door/request-target.ts';
import { encodedAsset } from './assets/compressed.ts';
import { ASSETS_BY_PATH } from './assets/files.ts';
import { answerNotFound, fieldsSent, registerRooms, type Serving } from './binding.ts';
import type { SiteContext } from './context.ts';
import { answerFault } from './faults.ts';
import { CSRF_FIELD, fieldsOf, SentForm } from './layout/forms.ts';
import type { Room } from './layout/room.ts';
import { readParts, UnreadableParts } from './layout/sent-parts.ts';
import type { SignedIn, Visit } from './layout/visit.ts';
import { FORM_BYTES_MAX } from './limits.ts';
import { goImportPage } from './repositories/go-import.ts';
import { ROOMS } from './rooms.ts';
import { registerSessions } from './sessions/browser-sessions.ts';
import { type Cookies, cookiesFor } from './sessions/cookies.ts';
import { formOwner } from './sessions/visits.ts';

/** So that routing never bounds a path itself. Internal: no accepted request head is as long. */
const PARAM_LENGTH_MAX = 64 * 1024;
/** A path that no route has, for targets that are not paths. */
const NOWHERE = '/.not-a-path';

export interface WebsiteOptions {
  /** All rooms by default. */
  readonly rooms?: readonly Room[];
  /** A form that takes longer than this to arrive ends its connection. */
  readonly bodySpanMs?: number;
}

/** Creates the website. It takes requests through `routing`, from a server that others share. */
export function createWebsite(context: SiteContext, options: WebsiteOptions = {}): FastifyInstance {
  const { rooms = ROOMS, bodySpanMs = JSON_BODY_SPAN_MS } = options;
  const cookies = cookiesFor(context.addresses().webUrl);
  const scheme = cookies.secure ? 'https' : 'http';
  const app = Fastify({
    logger: false,
    bodyLimit: FORM_BYTES_MAX,
    genReqId: () => context.ids.next<EventId>(),
    // The scheme is what people's browsers use, which the settings say, whatever a proxy in front adds or omits.
    trustProxy: true,
    rewriteUrl: (request) => {
      request.headers['x-forwarded-proto'] = scheme;
      const target = request.url ?? '';
      return target.startsWith('/') ? routableTarget(target) : NOWHERE;
    },
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX, ignoreTrailingSlash: true },
  });
  const serving: Serving = { context, cookies, bodySpanMs, navigation: (person) => linksOf(rooms, person) };
  app.decorateRequest('identity', null);
  secureHeaders(app, cookies);
  app.addHook('onResponse', async (request, reply) => report(context, request, reply));
  answerGo(app, context);
  serveAssets(app);
  app.register(async (pages) => {
    pages.setErrorHandler((error: FastifyError, request, reply) => answerFault(serving, error, request, reply));
    registerSessions(pages, context, cookies);
    // A form is the only body that pages take.
    pages.removeAllContentTypeParsers();
    pages.register(fastifyFormBody, {
      bodyLimit: FORM_BYTES_MAX,
      parser: (text) => ({ form: new SentForm(fieldsOf(text)) }),
    });
    takeParts(pages);
    pages.register(fastifyCsrf, {
      cookieKey: cookies.names.form,
      cookieOpts: cookies.attributes,
      csrfOpts: { hmacKey: context.formKey, userInfo: true },
      getUserInfo: formOwner,
      getToken: (request) => fieldsSent(request).text(CSRF_FIELD),
    });
    // After the hooks that know the session.
    pages.after(() => {
      answerNotFound(serving, pages, rooms);
      registerRooms(serving, pages, rooms);
    });
  });
  return app;
}

/** Forms that are sent in parts, which only some routes take. */
function takeParts(pages: FastifyInstance): void {
  const options = { parseAs: 'buffer', bodyLimit: FORM_BYTES_MAX } as const;
  pages.addContentTypeParser('multipart/form-data', options, async (request: FastifyRequest, body: Buffer) => {
    if (request.routeOptions.config.form?.parts !== true) throw new UnreadableParts();
    return { form: new SentForm(await readParts(request.headers['content-type'] ?? '', body)) };
  });
}

function linksOf(rooms: readonly Room[], person: SignedIn): Visit['navigation'] {
  return rooms.flatMap(({ navigation }) => navigation?.(person) ?? []);
}

/** Registered before all else, so that every answer has these headers. */
function secureHeaders(app: FastifyInstance, { secure }: Cookies): void {
  const own = ["'self'"];
  const none = ["'none'"];
  app.register(fastifyHelmet, {
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: none,
        scriptSrc: own,
        styleSrc: own,
        imgSrc: own,
        connectSrc: own,
        formAction: own,
        baseUri: none,
        frameAncestors: none,
      },
    },
    // With `no-referrer`, browsers would send forms with `Origin: null`, which says less (sessions/cross-site.ts).
    referrerPolicy: { policy: 'same-origin' },
    strictTransportSecurity: secure ? { maxAge: 31_536_000, includeSubDomains: false } : false,
    xFrameOptions: { action: 'deny' },
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).header('cache-control', 'no-store');
    if (formFault(request.raw) === null) return;
    reply.code(400).header('connection', 'close').type('text/plain; charset=utf-8');
    return reply.send('The request is not well-formed HTTP\n');
  });
}

/** Before a sender is identified, since Go's client brings no credentials to pages. */
function answerGo(app: FastifyInstance, context: SiteContext): void {
  app.addHook('onRequest', async (request, reply) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return;
    const page = goImportPage(request.originalUrl, request.headers.host, context.addresses());
    if (page !== null) return reply.type('text/html; charset=utf-8').send(page.markup());
  });
}

function serveAssets(app: FastifyInstance): void {
  for (const [path, asset] of ASSETS_BY_PATH) {
    app.get(path, async (request, reply) => {
      const { bytes, coding } = await encodedAsset(asset, request.headers['accept-encoding']);
      const headers = { 'cache-control': 'public, max-age=31536000, immutable', vary: 'accept-encoding' };
      if (coding !== null) reply.header('content-encoding', coding);
      return reply.headers(headers).type(asset.type).send(bytes);
    });
  }
}

function report(context: SiteContext, request: FastifyRequest, reply: FastifyReply): void {
  context.onFinished(
    {
      route: request.routeOptions.url ?? null,
      method: request.method,
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
      requestId: request.id,
      account: request.identity?.session?.account ?? null,
    },
    request.raw,
  );
}
