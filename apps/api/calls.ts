/**
 * Carries a request to its handler: admits the caller first, then runs the handler with what that caller may use.
 *
 * Invariants: the handler of an account or repository route runs only after `admit` has admitted the request.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { REQUEST_POINTS } from '../../core/kernel/limits.ts';
import type { Principal } from '../../core/use-cases/callers/principal.ts';
import { type FoundRepository, isFormerName } from '../../core/use-cases/repositories/repositories.ts';
import {
  admitToRepository,
  type Denial,
  type Identified,
  identify,
  notPermitted,
  originOf,
  type RepositoryNames,
} from '../front-door/admission.ts';
import type { RateState } from '../front-door/callers.ts';
import { refusedChange } from '../front-door/changes.ts';
import { closedSignal } from '../front-door/closed-signal.ts';
import { bearerToken } from '../front-door/credentials.ts';
import { countDeniedRead } from '../front-door/refused-reads.ts';
import { formFault } from '../front-door/request-form.ts';
import { MALFORMED_KEY } from './changed-once.ts';
import { denialAnswer, rateAnswer } from './denials.ts';
import { type Answer, problem } from './http/answer.ts';
import { readIdempotencyKey } from './http/idempotency-key.ts';
import { createForeignPath, createUnmatched, slashedParameter } from './http/targets.ts';
import type { AccountCall, Outcome, PublicCall, RepositoryCall, Route } from './route.ts';
import { ROUTES } from './routes.ts';
import type { ApiServices } from './services.ts';

/** The caller, and the repository of a repository route, as `admit` found them. */
export interface Admitted extends Identified {
  readonly repository: FoundRepository | null;
}

const unmatched = createUnmatched(ROUTES);
const isForeignPath = createForeignPath(ROUTES);

/**
 * Runs the checks of apps/front-door/admission.ts on the request, and answers 404 or 405 where no route matches.
 * Resolves to null for a public route.
 */
export async function admit(
  context: ApiServices,
  request: FastifyRequest,
  reply: FastifyReply,
  route: Route | undefined,
): Promise<Admitted | Answer | null> {
  const fault = formFault(request.raw);
  if (fault !== null) return problem(400, fault, { connection: 'close' });
  if (route?.push === true && request.headers['if-match'] !== undefined) return problem(400, NO_IF_MATCH);
  if (route?.push === true && readIdempotencyKey(request.headers) === 'malformed') return problem(400, MALFORMED_KEY);
  if (route?.kind === 'public') return null;
  const { raw } = request;
  const exchange = { request: raw, response: reply.raw };
  const identified = await identify(context, exchange, bearerToken, pointsOf(route));
  const isRead = route !== undefined && READING.has(route.method);
  if ('denied' in identified) {
    if (isRead) countDeniedRead(context, identified, null);
    return denialAnswer(identified);
  }
  tellRate(reply, identified.rate);
  if (route === undefined || isForeignPath(route, request.originalUrl)) return unmatched(request.originalUrl);
  const { principal } = identified;
  const path = pathNames(request.params);
  const repository = await permittedOn(context, principal, route, path);
  if (repository !== null && 'denied' in repository) {
    if (isRead) countDeniedRead(context, repository, principal);
    return denialAnswer(repository);
  }
  if (repository !== null && isFormerName(repository, path.name)) return movedAnswer(repository, request.originalUrl);
  if (isRead || route.push === true) return { ...identified, repository };
  // A request that may append.
  const passes = route.method === 'DELETE' || route.beyondQuota === true;
  const used = passes ? null : await refusedChange(context, principal);
  const refusal = used ?? context.callers.record(principal, 0);
  return refusal === null ? { ...identified, repository } : rateAnswer(refusal);
}

const OF_REPOSITORY = /^(\/v1\/repos\/)[^/?#]+\/[^/?#]+/;

/** Leads to the same target under the repository's name of today, with the same method and body. */
function movedAnswer({ account, owned }: FoundRepository, target: string): Answer {
  const name = `${account.username}/${owned.name}`;
  return problem(308, `The repository is ${name} now`, { location: target.replace(OF_REPOSITORY, `$1${name}`) });
}

const READING: ReadonlySet<string> = new Set(['GET', 'HEAD']);

const NO_IF_MATCH = 'If-Match is not taken here: `expected` in the body names the head that you saw';

/** Returns the repository of a repository route, null for an account route, or the denial. */
async function permittedOn(
  context: ApiServices,
  principal: Principal,
  route: Exclude<Route, { readonly kind: 'public' }>,
  path: ReturnType<typeof pathNames>,
): Promise<FoundRepository | Denial | null> {
  if (route.kind === 'account') return notPermitted(principal, route.requirement, path.id);
  return admitToRepository(context, principal, route.requirement, path, 'permission');
}

/** By the route: a request that no route takes costs what a read does. */
function pointsOf(route: Route | undefined): number {
  if (route?.push === true) return REQUEST_POINTS.push;
  const costly = route !== undefined && (route.costly === true || !READING.has(route.method));
  return costly ? REQUEST_POINTS.costly : REQUEST_POINTS.read;
}

function tellRate(reply: FastifyReply, rate: RateState): void {
  const { raw } = reply;
  raw.setHeader('x-ratelimit-limit', rate.limit);
  raw.setHeader('x-ratelimit-remaining', rate.remaining);
  raw.setHeader('x-ratelimit-reset', rate.resetSeconds);
}

/** A request, and the answer that it is to get. */
export interface Exchange {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export async function run(
  context: ApiServices,
  { request, reply }: Exchange,
  route: Route,
  admitted: Admitted | null,
): Promise<Outcome> {
  const { raw, id: requestId, query, body } = request;
  const input = { params: paramsOf(request.params, route), query, body };
  const call: PublicCall = {
    context,
    request: raw,
    requestId,
    target: request.originalUrl,
    signal: () => closedSignal(reply.raw),
  };
  if (route.kind === 'public') return route.run(call, input);
  if (admitted === null) throw new TypeError(`${route.operationId} was reached without admission`);
  const { principal, position, repository } = admitted;
  const { requirement } = route;
  const origin: AccountCall['origin'] = () => {
    const { id } = pathNames(request.params);
    return originOf(context, raw, requestId, { principal, requirement, id, repository, door: 'api' });
  };
  const accountCall: AccountCall = { ...call, principal, position, origin };
  if (route.kind === 'account') return route.run(accountCall, input);
  if (repository === null) throw new TypeError(`${route.operationId} was admitted without its repository`);
  return route.run({ ...accountCall, repository, contents: request.contents ?? NO_CONTENTS }, input);
}

const NO_CONTENTS: RepositoryCall['contents'] = new Map();

/** The router gives every parameter as a text. */
function parseNamed(params: unknown): Readonly<Record<string, string | undefined>> {
  return params as Readonly<Record<string, string | undefined>>;
}

/** The router calls the last parameter `*` if it matches slashes too. */
function paramsOf(params: unknown, { path }: Pick<Route, 'path'>): ReturnType<typeof parseNamed> {
  const named = parseNamed(params);
  const slashed = slashedParameter(path);
  return slashed === null ? named : { ...named, [slashed]: named['*'] };
}

/** The path parameters that admission checks; empty where the path lacks them. */
function pathNames(params: unknown): RepositoryNames & { readonly id: string } {
  const { username = '', name = '', id = '' } = parseNamed(params);
  return { username, name, id };
}
