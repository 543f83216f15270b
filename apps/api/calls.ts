/**
 * Carries a request to its handler: admits the caller first, then runs the handler with what that caller may use.
 *
 * Must stay true: the handler of an account or repository route runs only after `admit` has admitted the request.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { FoundRepository } from '../../core/use-cases/accounts/repositories.ts';
import {
  admitToRepository,
  type Identified,
  identify,
  notPermitted,
  originOf,
  type RepositoryNames,
} from '../front-door/admission.ts';
import { closedSignal } from '../front-door/closed-signal.ts';
import { bearerToken } from '../front-door/credentials.ts';
import { formFault } from '../front-door/request-form.ts';
import { denialAnswer } from './denials.ts';
import { type Answer, problem } from './http/answer.ts';
import { createUnmatched } from './http/targets.ts';
import type { AccountCall, Outcome, PublicCall, Route } from './route.ts';
import { ROUTES } from './routes.ts';
import type { ApiServices } from './services.ts';

/** The caller, and the repository of a repository route, as `admit` found them. */
export interface Admitted extends Identified {
  readonly repository: FoundRepository | null;
}

const unmatched = createUnmatched(ROUTES);

/**
 * Runs the checks of apps/front-door/admission.ts on the request, and answers 404 or 405 where no route matches.
 * Resolves to null for a public route.
 */
export async function admit(
  context: ApiServices,
  request: FastifyRequest,
  route: Route | undefined,
): Promise<Admitted | Answer | null> {
  const fault = formFault(request.raw);
  if (fault !== null) return problem(400, fault, { connection: 'close' });
  if (route?.kind === 'public') return null;
  const identified = await identify(context, request.raw, bearerToken(request.raw.headers.authorization));
  if ('denied' in identified) return denialAnswer(identified);
  if (route === undefined) return unmatched(request.originalUrl);
  const { principal, position } = identified;
  const path = pathNames(request.params);
  if (route.kind === 'account') {
    const denial = notPermitted(principal, route.requirement, path.id);
    return denial === null ? { principal, position, repository: null } : denialAnswer(denial);
  }
  const repository = await admitToRepository(context, principal, route.requirement, path, 'permission');
  return 'denied' in repository ? denialAnswer(repository) : { principal, position, repository };
}

export async function run(
  context: ApiServices,
  { request, reply }: { readonly request: FastifyRequest; readonly reply: FastifyReply },
  route: Route,
  admitted: Admitted | null,
): Promise<Outcome> {
  const { raw, id: requestId, query, body } = request;
  const input = { params: parseParams(request.params), query, body };
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
    return originOf(context, raw, requestId, { principal, requirement, id, repository });
  };
  const accountCall: AccountCall = { ...call, principal, position, origin };
  if (route.kind === 'account') return route.run(accountCall, input);
  if (repository === null) throw new TypeError(`${route.operationId} was admitted without its repository`);
  return route.run({ ...accountCall, repository }, input);
}

/** The router's `*` is the `path` of the table. */
function parseParams(params: unknown): Readonly<Record<string, string | undefined>> {
  const named = params as Readonly<Record<string, string | undefined>>;
  const { '*': path } = named;
  return path === undefined ? named : { ...named, path };
}

/** The path parameters that admission checks; empty where the path lacks them. */
function pathNames(params: unknown): RepositoryNames & { readonly id: string } {
  const { username = '', name = '', id = '' } = parseParams(params);
  return { username, name, id };
}
