/**
 * The Git endpoints under `/r/`: who asks, for which repository, whether they may; then the operation.
 *
 * Must stay true: the order of answers is 400 for the form, 401, 404 or 405 of the route, 404 of the repository, 403
 * (interface.md), so that nobody learns of what a token may not see; every entity is read after a barrier, so a revoked token and a moved
 * ref are seen at once; no secret reaches a log line.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Grant } from '../../core/kernel/grants.ts';
import { permits } from '../../core/kernel/grants.ts';
import { reaches } from '../../core/access-token/state.ts';
import type { Actor, Cause } from '../../core/kernel/envelope.ts';
import type { Uuid } from '../../core/kernel/ids.ts';
import { READ_WAIT_MS } from '../../core/kernel/limits.ts';
import { EventStoreError } from '../../core/ports/event-store.ts';
import { LayerStoreError } from '../../core/ports/layer-store.ts';
import { ObjectDatabaseError } from '../../core/ports/object-database.ts';
import { ReadModelError } from '../../core/ports/read-models.ts';
import { authenticate, type Bearer } from '../../core/use-cases/authenticate.ts';
import { type FoundRepository, findRepository } from '../../core/use-cases/accounts/repositories.ts';
import { parseGitProtocolHeader } from '../../core/git/wire/protocol-version.ts';
import { createRefAnswers, type RefAnswers } from './advertise.ts';
import type { GitRequest } from './git-request.ts';
import { CHALLENGE, GitHttpError, sendBytes, sendError } from './answer.ts';
import type { GitHttpContext } from './context.ts';
import { serveUploadPack } from './fetch.ts';
import { serveReceivePack } from './push.ts';
import { basicPassword, BodyError, formFault, type GitRoute, parseGitRoute } from './body.ts';

export type GitHandler = (request: IncomingMessage, response: ServerResponse) => void;

export function createGitHandler(context: GitHttpContext): GitHandler {
  const answers = createRefAnswers(context.agent);
  return (request, response) => {
    void handle(context, answers, request, response);
  };
}

async function handle(
  context: GitHttpContext,
  answers: RefAnswers,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startedMs = context.clock.monotonicMs();
  const requestId = context.ids.next<Uuid>();
  const finished: GitRequest['finished'] = { operation: 'none', sentBytes: 0, receivedBytes: 0 };
  let actor: Actor | null = null;
  response.setHeader('X-Request-Id', requestId);
  try {
    const fault = formFault(request);
    // Where such a request ends is not certain, so nothing more is read from its connection.
    if (fault !== null) throw new GitHttpError(400, fault, { Connection: 'close' });
    const bearer = await bearerOf(context, request);
    const route = routeOf(request);
    actor = { kind: 'token', id: bearer.tokenId };
    const repository = await visibleRepository(context, bearer, route);
    requireGrant(bearer, route.service === 'git-receive-pack' ? 'GIT_HTTP_WRITE' : 'GIT_HTTP_READ');
    context.lastUse.touch(bearer.tokenId);
    const sourceAddressRef = await context.sourceAddressRef(repository.accountId, context.clientAddress(request));
    const cause: Cause = { actor, requestId, sourceAddressRef, causationId: null };
    const header = request.headers['git-protocol'];
    const version = parseGitProtocolHeader(typeof header === 'string' ? header : undefined);
    const signal = closedSignal(response);
    await serve({ context, answers, request, response, repository, bearer, cause, version, signal, finished }, route);
  } catch (error) {
    fail(context, request, response, requestId, error);
  }
  const durationMs = context.clock.monotonicMs() - startedMs;
  context.onFinished({ ...finished, status: response.statusCode, durationMs, requestId, actor });
}

function routeOf(request: IncomingMessage): GitRoute {
  const route = parseGitRoute(request.url ?? '');
  if (route === 'dumb') {
    throw new GitHttpError(403, 'Strata speaks the smart HTTP protocol only: use git 1.6.6 or newer');
  }
  if (route === null) throw notFound();
  const method = route.kind === 'info-refs' ? 'GET' : 'POST';
  const asked = request.method === 'HEAD' && method === 'GET' ? 'GET' : request.method;
  if (asked !== method) throw new GitHttpError(405, `Use ${method}`, { Allow: method });
  const type = request.headers['content-type'];
  if (route.kind === 'rpc' && type !== `application/x-${route.service}-request`) {
    throw new GitHttpError(400, `The content type of this request is application/x-${route.service}-request`);
  }
  return route;
}

async function bearerOf(context: GitHttpContext, request: IncomingMessage): Promise<Bearer> {
  const secret = basicPassword(request.headers.authorization);
  if (secret === null) throw new GitHttpError(401, 'Sign in with an access token as the password', CHALLENGE);
  await withinReadWait(context.entities.barrier());
  const bearer = await authenticate(context, secret);
  if (bearer === null) {
    throw new GitHttpError(401, 'This access token is unknown, expired or revoked', CHALLENGE);
  }
  return bearer;
}

/** A token sees its own account's repositories, those that its scope includes. */
async function visibleRepository(context: GitHttpContext, bearer: Bearer, route: GitRoute): Promise<FoundRepository> {
  const found = await findRepository(context, route.username, route.repository);
  if (found === null || found.accountId !== bearer.token.account || !reaches(bearer.token, found.id)) throw notFound();
  return found;
}

function notFound(): GitHttpError {
  return new GitHttpError(404, 'Repository not found');
}

function requireGrant(bearer: Bearer, grant: Grant): void {
  if (!permits(bearer.token.grants, grant)) throw new GitHttpError(403, `This token lacks the grant ${grant}`);
}

function closedSignal(response: ServerResponse): AbortSignal {
  const controller = new AbortController();
  response.on('close', () => {
    if (!response.writableFinished) controller.abort(new Error('The client went away'));
  });
  return controller.signal;
}

async function serve(git: GitRequest, route: GitRoute): Promise<void> {
  const { answers, repository, response, version, finished } = git;
  if (route.kind === 'rpc') {
    await (route.service === 'git-upload-pack' ? serveUploadPack(git) : serveReceivePack(git));
    return;
  }
  finished.operation = 'info-refs';
  const type = `application/x-${route.service}-advertisement`;
  // There is no protocol v2 for pushes: such clients get v0 (gitprotocol-v2(5)).
  const bytes =
    route.service === 'git-receive-pack'
      ? answers.receivePack(repository, version === 1 ? 1 : 0)
      : version === 2
        ? answers.capabilities
        : answers.uploadPack(repository, version);
  finished.sentBytes = bytes.length;
  sendBytes(response, type, bytes);
}

/** Rejects with an outage when the wait takes too long: a late answer could be a stale one. */
async function withinReadWait(wait: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () => reject(new EventStoreError('log-unavailable', 'The log did not answer in time')),
      READ_WAIT_MS,
    );
  });
  try {
    await Promise.race([wait, expiry]);
  } finally {
    clearTimeout(timer);
  }
}

function fail(
  context: GitHttpContext,
  request: IncomingMessage,
  response: ServerResponse,
  requestId: Uuid,
  error: unknown,
): void {
  const answer = errorAnswer(error, requestId);
  if (answer.status >= 500 && !response.destroyed) context.log.error({ err: error, requestId }, 'git request failed');
  if (response.headersSent) {
    // The answer is cut off: only a broken connection tells the client so.
    response.destroy();
    return;
  }
  // What is left of the body is not read, so the connection cannot be used again.
  if (!request.complete) response.setHeader('Connection', 'close');
  sendError(response, answer);
}

function errorAnswer(error: unknown, requestId: Uuid): GitHttpError {
  if (error instanceof GitHttpError) return error;
  if (error instanceof BodyError) return new GitHttpError(error.code === 'body-too-large' ? 413 : 400, error.message);
  const outage = outageOf(error);
  if (outage !== null) return new GitHttpError(503, outage, { 'Retry-After': '5' });
  return new GitHttpError(500, `Something went wrong here; the request was ${requestId}`);
}

/** The words for a part of the service that is down; null for anything else. */
function outageOf(error: unknown): string | null {
  if (error instanceof EventStoreError && error.code !== 'invalid-event' && error.code !== 'append-too-large') {
    return 'The event log cannot be reached: nothing was changed unless you were told so; try again in a moment';
  }
  if (isDiskFull(error)) return 'The server has no room left on its disk: try again later';
  if (error instanceof ReadModelError) return 'The read models are behind: try again in a moment';
  if (error instanceof LayerStoreError) return 'The layer storage cannot be used: try again in a moment';
  if (error instanceof ObjectDatabaseError) {
    return error.code === 'layer-corrupt'
      ? 'A stored layer of this repository is damaged: its owner and the operators must act'
      : 'The objects of this repository cannot be read: try again in a moment';
  }
  return null;
}

function isDiskFull(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT' || isDiskFull(error.cause);
}
