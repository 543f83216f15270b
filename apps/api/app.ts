/**
 * The REST API as a Fastify instance: it reads requests, enforces the table of routes and writes answers.
 *
 * Must stay true: every answer, of whatever fault, has the shape of interface.md and carries X-Request-Id, which
 * is always ours: it goes into the record, so a client does not choose it.
 */
import swagger from '@fastify/swagger';
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type FastifyServerFactory,
} from 'fastify';
import type { EventId } from '../../core/kernel/ids.ts';
import { BODY_IDLE_MS, JSON_BODY_BYTES_MAX, JSON_BODY_SPAN_MS } from '../../core/kernel/limits.ts';
import { type EncodedBody, encodeJson } from './body-cache.ts';
import { type Admitted, admit, run } from './calls.ts';
import type { ApiContext } from './context.ts';
import { answerUnreadable, faultAnswer } from './faults.ts';
import { type Answer, JSON_TYPE } from './http/answer.ts';
import { readJsonBody } from './http/json-body.ts';
import { parseQuery } from './http/query.ts';
import { hasHead, NOT_FOUND, routableTarget, routerPath } from './http/targets.ts';
import { documentedSchema, swaggerOptions } from './openapi.ts';
import { refusalAnswer } from './refusals.ts';
import type { Route } from './route.ts';
import { ROUTES } from './routes.ts';
import { type ApiServices, createApiServices } from './services.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    route?: Route;
  }
  interface FastifyRequest {
    admitted: Admitted | null;
  }
}

export interface ApiOptions {
  /** Makes the server that calls the handler it is given; absent: a plain node:http server. */
  readonly serverFactory?: FastifyServerFactory;
  readonly timeouts?: Timeouts;
}

/** Both in milliseconds: the server that hands us requests may set none, as Git's may take hours. */
export interface Timeouts {
  /** A request's body that takes longer ends its connection. */
  readonly body: number;
  /** A client that takes nothing of a streamed answer for this long is left. */
  readonly idle: number;
}

/** The server bounds a request's head; routing needs no bound of its own below that. */
const PARAM_LENGTH_MAX = 64 * 1024;
const TIMEOUTS: Timeouts = { body: JSON_BODY_SPAN_MS, idle: BODY_IDLE_MS };

/** The API, to listen by itself or to be handed requests by the server that `serverFactory` made. */
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
  // The routes check their input themselves (route.ts), by the same schemas the document is made from.
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => (value) => JSON.stringify(value));
  takeJsonBodies(app);
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    const admitted = await admit(context, request, request.routeOptions.config.route);
    if (admitted !== null && 'status' in admitted) return send(reply, admitted);
    request.admitted = admitted;
    return undefined;
  });
  app.addHook('preParsing', (request, _reply, payload, done) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') boundBody(request, timeouts.body);
    done(null, payload);
  });
  app.addHook('onResponse', async (request, reply) => report(context, request, reply));
  app.setErrorHandler((error: FastifyError, request, reply) => send(reply, faultAnswer(context.log, error, request)));
  app.setNotFoundHandler((_request, reply) => send(reply, NOT_FOUND));
  app.register(swagger, swaggerOptions(apiContext.version));
  app.after(() => {
    for (const route of ROUTES) mount(app, context, route, timeouts.idle);
  });
  return app;
}

function boundBody({ raw }: FastifyRequest, spanMs: number): void {
  const timer = setTimeout(() => raw.destroy(), spanMs).unref();
  raw.once('close', () => clearTimeout(timer));
  raw.once('end', () => clearTimeout(timer));
}

function takeJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, async (request: FastifyRequest, bytes: Buffer) =>
    readJsonBody(request.headers, bytes),
  );
}

function mount(app: FastifyInstance, context: ApiServices, route: Route, idleMs: number): void {
  const handler = async (request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> => {
    const outcome = await run(context, request, route, request.admitted);
    return send(reply, 'refused' in outcome ? refusalAnswer(outcome.refused) : outcome, idleMs);
  };
  const url = routerPath(route.path);
  app.route({ method: route.method, url, schema: documentedSchema(route), config: { route }, handler });
  // Node leaves the body of an answer to HEAD away.
  if (hasHead(route)) app.route({ method: 'HEAD', url, schema: { hide: true }, config: { route }, handler });
}

function send(reply: FastifyReply, { status, headers, body }: Answer, idleMs = BODY_IDLE_MS): FastifyReply {
  reply.code(status).headers(headers);
  switch (body.kind) {
    case 'none':
      return reply.send();
    case 'json':
      return reply.type(JSON_TYPE).send(JSON.stringify(body.json));
    case 'bytes':
      return reply.send(body.bytes);
    case 'stream':
      // A client that does not read must not keep what the stream holds open.
      reply.raw.setTimeout(idleMs, () => reply.raw.destroy());
      return reply.send(body.stream);
  }
}

function report(context: ApiServices, request: FastifyRequest, reply: FastifyReply): void {
  const { admitted } = request;
  context.onFinished({
    operationId: request.routeOptions.config.route?.operationId ?? null,
    method: request.method,
    status: reply.statusCode,
    durationMs: reply.elapsedTime,
    requestId: request.id,
    actor: admitted === null ? null : { kind: 'token', id: admitted.bearer.tokenId },
  });
}

/** The OpenAPI document's bytes, made at the first request: the server's own address is known by then. */
function documentOf(app: FastifyInstance, context: ApiContext): () => EncodedBody {
  let made: EncodedBody | null = null;
  return () => {
    if (made === null) {
      const document = { ...app.swagger(), servers: [{ url: context.addresses().baseUrl }] };
      made = encodeJson(document, `"${context.digest.sha256(JSON.stringify(document)).slice(0, 32)}"`);
    }
    return made;
  };
}
