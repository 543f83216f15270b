/**
 * From a request to its handler: who asks is found out first, then the handler runs with what it may use.
 *
 * Must stay true: an account's or repository's handler is reached only through `admit`.
 */
import type { FastifyRequest } from 'fastify';
import { type Bearer, guardedBy } from '../../core/use-cases/authenticate.ts';
import type { FoundRepository, RepositoryCommandOrigin } from '../../core/use-cases/accounts/repositories.ts';
import {
  type Authenticated,
  authenticateRequest,
  denial,
  type PathNames,
  repositoryInSight,
  stillAllowed,
} from './admission.ts';
import type { Answer } from './http/answer.ts';
import { requestFault } from '../front-door/request-form.ts';
import { createUnmatched } from './http/targets.ts';
import type { AccountCall, Outcome, PublicCall, Route } from './route.ts';
import { ROUTES } from './routes.ts';
import type { ApiServices } from './services.ts';

/** What was found out about a request before its handler runs. */
export interface Admitted extends Authenticated {
  readonly repository: FoundRepository | null;
}

const unmatched = createUnmatched(ROUTES);

/**
 * Takes the request through the checks of interface.md: 400 for its form, 401, then 404 or 405 of the route,
 * 403, 404 of the repository. Null for a public route.
 */
export async function admit(
  context: ApiServices,
  request: FastifyRequest,
  route: Route | undefined,
): Promise<Admitted | Answer | null> {
  const fault = requestFault(request.raw);
  if (fault !== null) return fault;
  if (route?.kind === 'public') return null;
  const authenticated = await authenticateRequest(context, request.raw);
  if ('status' in authenticated) return authenticated;
  if (route === undefined) return unmatched(request.originalUrl);
  const path = pathNames(request.params);
  const denied = denial(route.requirement, authenticated.bearer, path);
  if (denied !== null) return denied;
  if (route.kind === 'account') return { ...authenticated, repository: null };
  const repository = await repositoryInSight(context, authenticated.bearer, path);
  return 'status' in repository ? repository : { ...authenticated, repository };
}

export async function run(
  context: ApiServices,
  request: FastifyRequest,
  route: Route,
  admitted: Admitted | null,
): Promise<Outcome> {
  const { raw, id: requestId, query, body } = request;
  const input = { params: parseParams(request.params), query, body };
  const call: PublicCall = { context, request: raw, requestId, target: request.originalUrl };
  if (route.kind === 'public') return route.run(call, input);
  if (admitted === null) throw new TypeError(`${route.operationId} was reached without admission`);
  const { bearer, position, repository } = admitted;
  const origin = (): Promise<RepositoryCommandOrigin> => originOf(context, request, route, bearer, repository);
  const accountCall: AccountCall = { ...call, bearer, position, origin };
  if (route.kind === 'account') return route.run(accountCall, input);
  if (repository === null) throw new TypeError(`${route.operationId} was admitted without its repository`);
  return route.run({ ...accountCall, repository }, input);
}

/** Who asks, as events state it, with the guard that their append depends on the token. */
async function originOf(
  context: ApiServices,
  request: FastifyRequest,
  route: Route,
  bearer: Bearer,
  repository: FoundRepository | null,
): Promise<RepositoryCommandOrigin> {
  const { account } = bearer.token;
  const sourceAddressRef = await context.sourceAddressRef(account, context.clientAddress(request.raw));
  const actor = { kind: 'token', id: bearer.tokenId } as const;
  return {
    account,
    cause: { actor, requestId: request.id, sourceAddressRef, causationId: null },
    guarding: guardedBy(context, bearer, stillAllowed(route, pathNames(request.params), repository)),
  };
}

/** The router's `*` is the `path` of the table. */
function parseParams(params: unknown): Readonly<Record<string, string | undefined>> {
  const named = params as Readonly<Record<string, string | undefined>>;
  const { '*': path } = named;
  return path === undefined ? named : { ...named, path };
}

/** The names in a path that admission looks at; empty where the path has none. */
function pathNames(params: unknown): PathNames {
  const { username = '', name = '', id = '' } = parseParams(params);
  return { username, name, id };
}
