/**
 * The REST API as a Fastify instance: it reads requests, enforces the table of routes and writes answers.
 *
 * Invariants: every answer, errors included, has the shape of docs/interface.md and carries X-Request-Id. The
 * server always makes that id itself, because events record it: no client may choose it.
 */
import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
} from 'fastify';
import { KIB, MIB } from '../../core/kernel/byte-units.ts';
import type { EventId } from '../../core/kernel/ids.ts';
import { BODY_IDLE_MS, JSON_BODY_SPAN_MS } from '../../core/kernel/limits.ts';
import type { StoredBlob } from '../../core/ports/new-contents.ts';
import { actorOf } from '../../core/use-cases/callers/principal.ts';
import { heldBody } from '../front-door/body-budget.ts';
import { answerLate, LATE_BODY_TEXT, limitBodySpan } from '../front-door/body-span.ts';
import type { HeldRefusal } from '../front-door/held-bytes.ts';
import { routableTarget } from '../front-door/request-target.ts';
import { holdUnsent } from '../front-door/unsent-budget.ts';
import { type EncodedBody, encodeJson } from './body-cache.ts';
import { type Admitted, admit, type Exchange, run } from './calls.ts';
import type { ApiContext } from './context.ts';
import { rateAnswer, refusalAnswer, unsentRefusalAnswer } from './denials.ts';
import { answerUnreadable, faultAnswer, JSON_ONLY } from './faults.ts';
import { type Answer, JSON_TYPE, problem } from './http/answer.ts';
import { compressedAnswer } from './http/compression.ts';
import { corsHeaders, isPreflight, PREFLIGHT } from './http/cors.ts';
import { BodyRefused, JSON_BODY_VALUES_MAX, PUSH_BODY_VALUES_MAX, readJsonBody } from './http/json-body.ts';
import { parseQuery } from './http/query.ts';
import { hasHead, NOT_FOUND, routerPath } from './http/targets.ts';
import { PUSH_BODY_BYTES_MAX, PUSH_BODY_HELD_FACTOR } from './limits.ts';
import { documentedSchema, swaggerOptions } from './openapi.ts';
import { inOpenApi30 } from './openapi-30.ts';
import type { Outcome, Route } from './route.ts';
import { ROUTES } from './routes.ts';
import { isInParts, PartsToCome, withSentParts } from './sent-parts.ts';
import { type ApiServices, createApiServices } from './services.ts';

/** The size of a JSON body that a route with a token takes. */
export const JSON_BODY_BYTES_MAX = MIB;
/**
 * The size of a JSON body that a route without a token takes: who signs in by a device, or exchanges an identity token.
 */
export const PUBLIC_BODY_BYTES_MAX = 64 * KIB;

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route;
  }
  interface FastifyRequest {
    admitted: Admitted | null;
    contents: ReadonlyMap<string, StoredBlob> | null;
  }
}

export interface ApiOptions {
  /** Creates the server that calls Fastify's handler; absent: a plain node:http server. */
  readonly serverFactory?: FastifyServerFactory;
  readonly timeouts?: Timeouts;
}

/** Both in milliseconds. The API sets them itself, since the shared server sets none: Git requests may take hours. */
export interface Timeouts {
  /** A request body that takes longer than this ends its connection. */
  readonly body: number;
  /** A client that reads nothing of a streamed answer for this long is disconnected. */
  readonly idle: number;
}

/**
 * Larger than any request head that the server accepts, so that routing never bounds a path itself. Internal: no
 * accepted request head is as long.
 */
const PARAM_LENGTH_MAX = 64 * 1024;

const TIMEOUTS: Timeouts = { body: JSON_BODY_SPAN_MS, idle: BODY_IDLE_MS };

/** Creates the API. It listens on its own server, or takes requests from the server that `serverFactory` returns. */
export function createApi(apiContext: ApiContext, options: ApiOptions = {}): FastifyInstance {
  const { timeouts = TIMEOUTS } = options;
  const newRequestId = (): string => apiContext.ids.next<EventId>();
  const app = Fastify({
    logger: false,
    bodyLimit: JSON_BODY_BYTES_MAX,
    requestTimeout: timeouts.body,
    exposeHeadRoutes: false,
    genReqId: newRequestId,
    rewriteUrl: (request) => routableTarget(request.url ?? ''),
    routerOptions: { maxParamLength: PARAM_LENGTH_MAX, querystringParser: parseQuery },
    clientErrorHandler: (error, socket) => answerUnreadable(error, socket, newRequestId()),
    ...(options.serverFactory === undefined ? {} : { serverFactory: options.serverFactory }),
  });
  const context = createApiServices(apiContext, documentOf(app, apiContext));
  app.decorateRequest('admitted', null);
  app.decorateRequest('contents', null);
  // The routes check their input themselves (apps/api/route.ts), with the schemas that the OpenAPI document shows.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  acceptBodies(app, context);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    reply.headers(corsHeaders(request.method));
    if (isPreflight(request.method, request.originalUrl)) return send(reply, PREFLIGHT);
    const admitted = await admit(context, request, reply, request.routeOptions.config.route);
    if (admitted !== null && 'status' in admitted) return send(reply, admitted);
    request.admitted = admitted;
    return undefined;
  });
  app.addHook('preParsing', (request, reply, payload, done) => {
    const isParts = request.routeOptions.config.route?.parts === true && isInParts(request);
    if (request.method === 'GET' || request.method === 'HEAD' || isParts) {
      done(null, payload);
      return;
    }
    const exchange = { request: request.raw, response: reply.raw };
    limitBodySpan(exchange, timeouts.body, () => {
      reply.hijack();
      const body = JSON.stringify({ detail: LATE_BODY_TEXT });
      answerLate(request.raw, reply.raw, { contentType: JSON_TYPE, body });
    });
    const account = request.admitted?.principal.account ?? null;
    const factor = request.routeOptions.config.route?.push === true ? PUSH_BODY_HELD_FACTOR : 1;
    done(null, heldBody(context, exchange, account, factor));
  });
  app.addHook('onResponse', async (request, reply) => report(context, request, reply));
  app.setErrorHandler((error: FastifyError, request, reply) => send(reply, faultAnswer(context, error, request)));
  app.setNotFoundHandler((_request, reply) => send(reply, NOT_FOUND));
  app.register(swagger, swaggerOptions(apiContext.version, ROUTES));
  app.after(() => {
    for (const route of ROUTES) mount(app, context, route, timeouts.idle);
  });
  return app;
}

/** Bodies are JSON. Those in parts are read by the handler of their route. */
function acceptBodies(app: FastifyInstance, { callers }: ApiServices): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer' },
    async (request: FastifyRequest, bytes: Buffer) => {
      const principal = request.admitted?.principal;
      const refusal = principal === undefined ? null : callers.recordBody(principal, bytes.length);
      if (refusal !== null) throw new BodyRefused(rateAnswer(refusal));
      const isPush = request.routeOptions.config.route?.push === true;
      return readJsonBody(request.headers, bytes, isPush ? PUSH_BODY_VALUES_MAX : JSON_BODY_VALUES_MAX);
    },
  );
  app.addContentTypeParser('multipart/form-data', async () => new PartsToCome());
}

function mount(app: FastifyInstance, context: ApiServices, route: Route, idleMs: number): void {
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const outcome = await runWhenSent(context, { request, reply }, route);
    const answer = 'refused' in outcome ? refusalAnswer(outcome.refused) : outcome;
    const compressed = await compressedAnswer(answer, request.headers['accept-encoding']);
    return send(reply, compressed, { idleMs, hold: (bytes) => hold(context, { request, reply }, bytes) });
  };
  const url = routerPath(route.path);
  const bodyLimit = bodyBytesMax(route);
  app.route({ method: route.method, url, schema: documentedSchema(route), config: { route }, bodyLimit, handler });
  // Node drops the body of an answer to HEAD.
  if (hasHead(route)) app.route({ method: 'HEAD', url, schema: { hide: true }, config: { route }, handler });
}

function bodyBytesMax({ kind, push }: Route): number {
  if (kind === 'public') return PUBLIC_BODY_BYTES_MAX;
  return push === true ? PUSH_BODY_BYTES_MAX : JSON_BODY_BYTES_MAX;
}

/** A request in parts has no turn while it arrives, which may take long. */
async function runWhenSent(context: ApiServices, { request, reply }: Exchange, route: Route): Promise<Outcome> {
  const { admitted } = request;
  const repository = admitted?.repository ?? null;
  if (!(request.body instanceof PartsToCome)) return runInTurn(context, { request, reply }, route);
  if (route.parts !== true) return problem(400, JSON_ONLY);
  if (admitted === null || repository === null || route.kind !== 'repository') {
    throw new TypeError(`${route.operationId} has no repository`);
  }
  const { principal } = admitted;
  const { requirement } = route;
  return withSentParts(context, { request, reply, principal, repository, requirement }, (sent) => {
    request.body = sent.body;
    request.contents = sent.contents;
    request.admitted = { ...admitted, principal: sent.principal, repository: sent.repository };
    return runInTurn(context, { request, reply }, route);
  });
}

/** Runs the handler when it is the account's turn: its body is there, and what it makes may be read slowly. */
async function runInTurn(context: ApiServices, { request, reply }: Exchange, route: Route): Promise<Outcome> {
  const { admitted } = request;
  const turn = admitted === null ? null : context.requestTurns.begin(admitted.principal.account);
  try {
    if (turn?.waits) await turn.waits;
    return await run(context, { request, reply }, route, admitted);
  } finally {
    turn?.end();
  }
}

/** What public routes answer is short, or the same for all. */
function hold(
  { unsentBudget }: ApiServices,
  { request: { admitted }, reply }: Exchange,
  bytes: Buffer | string,
): HeldRefusal | null {
  if (admitted === null) return null;
  return holdUnsent(unsentBudget, reply.raw, { account: admitted.principal.account }, bytes);
}

interface Sending {
  readonly idleMs?: number;
  /** Holds the memory for an answer that is sent whole; not asked for errors, which are short. */
  readonly hold?: (bytes: Buffer | string) => HeldRefusal | null;
}

function send(reply: FastifyReply, answer: Answer, { idleMs = BODY_IDLE_MS, hold }: Sending = {}): FastifyReply {
  const { status, headers, body } = answer;
  const whole = wholeBody(body);
  const refusal = whole === null ? null : (hold?.(whole) ?? null);
  if (refusal !== null) return send(reply, unsentRefusalAnswer(refusal));
  reply.code(status).headers(headers);
  switch (body.kind) {
    case 'none':
      return reply.send();
    case 'json':
      return reply.type(JSON_TYPE).send(whole);
    case 'bytes':
      return reply.send(whole);
    case 'stream':
      // A client that stops reading must not keep open the objects that the stream reads from.
      reply.raw.setTimeout(idleMs, () => reply.raw.destroy());
      return reply.send(body.stream);
  }
}

function wholeBody(body: Answer['body']): Buffer | string | null {
  if (body.kind === 'json') return JSON.stringify(body.json);
  return body.kind === 'bytes' ? body.bytes : null;
}

function report(context: ApiServices, request: FastifyRequest, reply: FastifyReply): void {
  const { admitted } = request;
  context.onFinished(
    {
      operationId: request.routeOptions.config.route?.operationId ?? null,
      method: request.method,
      status: reply.statusCode,
      durationMs: reply.elapsedTime,
      requestId: request.id,
      actor: admitted === null ? null : actorOf(admitted.principal),
    },
    request.raw,
  );
}

/** Returns the OpenAPI document's bytes, made at the first request, when the server's own address is known. */
function documentOf(app: FastifyInstance, context: ApiContext): ApiServices['openApi'] {
  const made = new Map<string, EncodedBody>();
  return (version) => {
    const known = made.get(version);
    if (known !== undefined) return known;
    const document = { ...app.swagger(), servers: [{ url: context.addresses().baseUrl }] };
    const asked = version === '3.0' ? inOpenApi30(document) : document;
    const body = encodeJson(asked, `"${context.digest.sha256(JSON.stringify(asked)).slice(0, 32)}"`);
    made.set(version, body);
    return body;
  };
}
