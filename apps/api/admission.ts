/**
 * Who may pass: the order of checks of interface.md, from one table of requirements.
 *
 * Must stay true: nothing is answered from memory before the barrier; a missing grant is told before any
 * repository is looked up, and a repository out of sight answers as one that does not exist.
 */
import type { IncomingMessage } from 'node:http';
import type { LogPosition } from '../../core/kernel/envelope.ts';
import { READ_WAIT_MS } from '../../core/kernel/limits.ts';
import { permits } from '../../core/kernel/grants.ts';
import { authenticate, type Bearer, sees } from '../../core/use-cases/authenticate.ts';
import { type FoundRepository, findRepository } from '../../core/use-cases/accounts/repositories.ts';
import { type Answer, problem, unauthenticated } from './http/answer.ts';
import { bearerToken } from '../front-door/request-form.ts';
import { NodeBehind } from './outages.ts';
import { refusalAnswer } from './refusals.ts';
import type { Requirement, Route } from './route.ts';
import type { ApiServices } from './services.ts';

export interface Authenticated {
  readonly bearer: Bearer;
  readonly position: LogPosition;
}

const NO_TOKEN = unauthenticated('An access token is needed: Authorization: Bearer <token>');
const BAD_TOKEN = unauthenticated('The access token is not valid');
const REPOSITORY_NOT_FOUND = refusalAnswer({ code: 'repository-not-found' });

/** The bearer of a valid token as of now, or 401. Throws `NodeBehind` when this node lags the log for too long. */
export async function authenticateRequest(
  context: ApiServices,
  request: IncomingMessage,
): Promise<Authenticated | Answer> {
  const secret = bearerToken(request.headers.authorization);
  if (secret === null) return NO_TOKEN;
  const position = await barrier(context);
  const bearer = await authenticate(context, secret);
  if (bearer === null) return BAD_TOKEN;
  context.lastUse.touch(bearer.tokenId);
  return { bearer, position };
}

/** Resolves once this node is as new as the log was at the call; throws `NodeBehind` when it lags for too long. */
export async function barrier(context: ApiServices): Promise<LogPosition> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new NodeBehind('This node did not reach the log head in time')), READ_WAIT_MS);
  });
  try {
    return await Promise.race([context.entities.barrier(), late]);
  } finally {
    clearTimeout(timer);
  }
}

export interface PathNames {
  readonly username: string;
  readonly name: string;
  readonly id: string;
}

/** Why the bearer may not use the route, as its 403; null when it may. */
export function denial(requirement: Requirement, bearer: Bearer, path: PathNames): Answer | null {
  if (requirement.onItself && path.id.toLowerCase() === bearer.tokenId) return null;
  const { grant, scope } = requirement;
  if (grant !== null && !permits(bearer.token.grants, grant)) {
    return problem(403, `This token lacks the grant ${grant}`);
  }
  if (scope !== null && bearer.token.scope !== scope) return problem(403, `This token lacks the scope ${scope}`);
  return null;
}

/** The repository of the path if the bearer sees it, else 404. */
export async function repositoryInSight(
  context: ApiServices,
  bearer: Bearer,
  path: PathNames,
): Promise<FoundRepository | Answer> {
  const found = await findRepository(context, path.username, path.name);
  return found !== null && sees(bearer, found) ? found : REPOSITORY_NOT_FOUND;
}

/** Whether a bearer, looked at anew, still passes what let the request in. */
export function stillAllowed(
  route: Route,
  path: PathNames,
  repository: FoundRepository | null,
): (bearer: Bearer) => boolean {
  return (bearer) =>
    (route.requirement === null || denial(route.requirement, bearer, path) === null) &&
    (repository === null || sees(bearer, repository));
}
