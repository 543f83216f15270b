/**
 * The Git endpoints: finds the caller, the repository and the permission, then calls the route's handler.
 *
 * Invariants: the checks run in the order of apps/front-door/admission.ts, so that nobody learns of a repository
 * that the token does not see. No secret reaches a log line.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parseGitProtocolHeader } from '../../core/git/wire/protocol-version.ts';
import { excerpt } from '../../core/git/wire/safe-line.ts';
import type { Actor } from '../../core/kernel/envelope.ts';
import type { Uuid } from '../../core/kernel/ids.ts';
import { REQUEST_POINTS } from '../../core/kernel/limits.ts';
import { lackOf } from '../../core/use-cases/callers/permission.ts';
import { actorOf } from '../../core/use-cases/callers/principal.ts';
import { type FoundRepository, isFormerName, isUsernameOf } from '../../core/use-cases/repositories/repositories.ts';
import { admitToRepository, type Identified, identify } from '../front-door/admission.ts';
import { closedSignal } from '../front-door/closed-signal.ts';
import { gitToken } from '../front-door/credentials.ts';
import { logFault } from '../front-door/fault-log.ts';
import { countDeniedRead } from '../front-door/refused-reads.ts';
import { formFault } from '../front-door/request-form.ts';
import { GitHttpError, sendError } from './answer.ts';
import { absenceError, repositoryAsOf } from './as-of.ts';
import type { GitHttpContext, GitOperation } from './context.ts';
import { denialError, faultError } from './faults.ts';
import type { GitRequest } from './git-request.ts';
import { createPolledRequests } from './polled-requests.ts';
import { resultOfError } from './push-result.ts';
import { type GitRoute, routesOf, serviceOf } from './routes.ts';
import { type GitTarget, pageOfCloneAddress, parseGitTarget } from './target.ts';

export type GitHandler = (request: IncomingMessage, response: ServerResponse) => void;

export function createGitHandler(context: GitHttpContext): GitHandler {
  const kept = { answers: context.refAnswers, requests: createPolledRequests() };
  return (request, response) => {
    handle(context, kept, request, response).catch((error: unknown) => {
      context.log.error({ err: error }, 'A git request failed without an answer');
      response.destroy();
    });
  };
}

async function handle(
  context: GitHttpContext,
  kept: Pick<GitRequest, 'answers' | 'requests'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const startedMs = context.clock.monotonicMs();
  const requestId = context.ids.next<Uuid>();
  // One that is refused before its handler runs is a push as well.
  const target = parseGitTarget(request.url ?? '');
  const isPush = target?.path === 'git-receive-pack';
  const operation = isPush && request.method === 'POST' ? 'push' : 'none';
  const finished: GitRequest['finished'] = { operation, sentBytes: 0, receivedBytes: 0, result: null };
  let actor: Actor | null = null;
  // Before the first await: a client that leaves during authentication would not be noticed afterwards.
  const signal = closedSignal(response);
  try {
    const fault = formFault(request);
    // The end of such a request is not certain, so the server reads nothing more from its connection.
    if (fault !== null) throw new GitHttpError(400, fault, { Connection: 'close' });
    if (target === null) leadBrowserToPage(request);
    const identified = await identify(
      context,
      { request, response },
      gitToken,
      isPush ? REQUEST_POINTS.push : REQUEST_POINTS.read,
    );
    const isRead = target !== null && serviceOf(target) === UPLOAD_PACK;
    if ('denied' in identified) {
      if (isRead) countDeniedRead(context, identified, null);
      throw denialError(identified);
    }
    const { principal } = identified;
    actor = actorOf(principal);
    if (target === null) throw denialError(NO_REPOSITORY);
    const route = routeOf(request, target);
    const repository = await repositoryOf(context, identified, route, target, signal);
    const header = request.headers['git-protocol'];
    const version = parseGitProtocolHeader(typeof header === 'string' ? header : undefined);
    const { requirement } = route;
    await route.handle({
      context,
      ...kept,
      request,
      requestId,
      response,
      repository,
      principal,
      requirement,
      version,
      signal,
      finished,
    });
  } catch (error) {
    const hasLeft = request.errored !== null || response.destroyed;
    if (finished.operation === 'push') finished.result ??= resultOfError(error, { repository: null, hasLeft });
    fail(context, request, response, { requestId, operation: finished.operation, hasLeft }, error);
  }
  const durationMs = context.clock.monotonicMs() - startedMs;
  context.onFinished({ ...finished, status: response.statusCode, durationMs, requestId, actor }, request);
}

/**
 * Ends the request if a browser opens a clone address: the page asks for its own sign-in. Git always asks for something
 * below that address.
 */
function leadBrowserToPage({ method, url = '' }: IncomingMessage): void {
  const page = method === 'GET' || method === 'HEAD' ? pageOfCloneAddress(url) : null;
  if (page !== null) throw new GitHttpError(303, `The page of this repository is at ${page}`, { Location: page });
}

/** Returns the repository, or the repository as of the moment, if the caller may read it. Throws GitHttpError. */
async function repositoryOf(
  context: GitHttpContext,
  { principal, position }: Identified,
  { requirement }: GitRoute,
  target: GitTarget,
  signal: AbortSignal,
): Promise<FoundRepository> {
  const admitting = admitToRepository(context, principal, requirement, target, 'sight');
  const found = admitting instanceof Promise ? await admitting : admitting;
  const { username, name, moment } = target;
  const asOf = { seen: position, signal };
  if (!('denied' in found)) {
    if (moment !== null) return repositoryAsOf(context, found, moment, asOf);
    if (target.path === INFO_REFS && isFormerName(found, name)) throw movedError(found, target);
    return found;
  }
  if (found.denied === 'repository-not-found' && moment !== null && lackOf(requirement, principal, '') === null) {
    const { account } = principal;
    const isOwn = await isUsernameOf(context, account, username);
    const reason = isOwn ? await absenceError(context, { account, name }, moment, asOf) : null;
    if (reason !== null) throw reason;
  }
  if (serviceOf(target) === UPLOAD_PACK) countDeniedRead(context, found, principal);
  throw denialError(found);
}

const UPLOAD_PACK = 'git-upload-pack';
const INFO_REFS = 'info/refs';

/**
 * Leads git on before its exchange begins, which is all that it follows by default. The location has no host, so that
 * git keeps what it was given before the host: the credentials.
 */
function movedError({ account, owned }: FoundRepository, { query }: GitTarget): GitHttpError {
  const name = `${account.username}/${owned.name}`;
  const location = `/r/${name}.git/${INFO_REFS}?${query}`;
  return new GitHttpError(301, `The repository is ${name} now`, { Location: location });
}

const NO_REPOSITORY = { denied: 'repository-not-found' } as const;

/** Refuses a service with 403 and names it, as git-http-backend(1) does. */
function notOffered(target: GitTarget): GitHttpError {
  const service = serviceOf(target);
  if (service === null) return new GitHttpError(404, `Nothing is served at ${excerpt(target.path)} below a repository`);
  const offered = 'git-upload-pack and git-receive-pack are';
  return new GitHttpError(403, `The service ${excerpt(service)} is not offered here: ${offered}`);
}

function routeOf(request: IncomingMessage, target: GitTarget): GitRoute {
  const routes = routesOf(target);
  if (routes === 'dumb') {
    throw new GitHttpError(403, 'Strata speaks the smart HTTP protocol only: use git 1.6.6 or newer');
  }
  if (routes.length === 0) throw notOffered(target);
  // Node drops the body of an answer to HEAD.
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const route = routes.find((candidate) => candidate.method === method);
  if (route === undefined) {
    const allowed = routes.map((candidate) => candidate.method).join(', ');
    throw new GitHttpError(405, `Use ${allowed}`, { Allow: allowed });
  }
  const { contentType } = route;
  if (contentType !== null && request.headers['content-type'] !== contentType) {
    throw new GitHttpError(400, `The content type of this request is ${contentType}`);
  }
  return route;
}

function fail(
  context: GitHttpContext,
  request: IncomingMessage,
  response: ServerResponse,
  {
    requestId,
    operation,
    hasLeft,
  }: { readonly requestId: Uuid; readonly operation: GitOperation; readonly hasLeft: boolean },
  error: unknown,
): void {
  const fault = faultError(error, requestId);
  // Nobody reads the answer to a client that left, and its leaving is no fault of the service: it is counted as REST
  // counts it.
  const answer = fault.status === 500 && hasLeft ? new GitHttpError(400, 'The request ended early') : fault;
  const { status } = answer;
  if (status >= 500 && !response.destroyed) logFault(context, error, { requestId, operation, status });
  if (response.headersSent) {
    // A broken connection tells the client that the answer was cut off, unless the answer was already ended.
    if (!response.writableEnded) response.destroy();
    return;
  }
  // The rest of the body is not read, so the connection cannot be used again.
  if (!request.complete) response.setHeader('Connection', 'close');
  sendError({ response, requestId }, answer);
}
