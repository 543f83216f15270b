/**
 * Every endpoint below a repository's URL: its method and path, its requirement, and its handler.
 *
 * Invariants: the transport enforces this table and the tests walk it. The answer to a path that is not in it names the
 * path, and is the same for every repository, whether it exists or not.
 */
import type { Grant } from '../../core/kernel/grants.ts';
import type { Requirement } from '../../core/use-cases/callers/permission.ts';
import { writeHead } from './answer.ts';
import { refusePush } from './as-of.ts';
import { serveUploadPack } from './fetch.ts';
import type { GitRequest } from './git-request.ts';
import { advertiseReceivePack, advertiseUploadPack } from './info-refs.ts';
import { serveReceivePack } from './push.ts';
import { type GitTarget, isBelowGit, parseGitTarget } from './target.ts';

/** The git program that serves the request, as clients name it. */
export type GitService = 'git-upload-pack' | 'git-receive-pack';

export interface GitRoute {
  readonly method: 'GET' | 'POST';
  /** The part after `<username>/<repository>.git/`. */
  readonly path: string;
  readonly service: GitService;
  /** Whether the query names the service: `info/refs` is one path for both services. */
  readonly serviceInQuery: boolean;
  readonly requirement: Requirement;
  /** The content type that the body must have; null if the endpoint reads no body. */
  readonly contentType: string | null;
  readonly handle: (git: GitRequest) => Promise<void>;
}

type Row = Pick<GitRoute, 'service' | 'handle' | 'requirement'>;

/** The refs of a service: what a client asks for first (gitprotocol-http(5), "Discovering References"). */
function advertisement({ service, requirement, handle }: Row): GitRoute {
  return { method: 'GET', path: 'info/refs', service, serviceInQuery: true, requirement, contentType: null, handle };
}

/** The service itself, whose path is its name. */
function exchange({ service, requirement, handle }: Row): GitRoute {
  const contentType = `application/x-${service}-request`;
  return { method: 'POST', path: service, service, serviceInQuery: false, requirement, contentType, handle };
}

function granted(grant: Grant): Requirement {
  return { grant, scope: null, onItself: false };
}

/** What LFS asks for lies below this path (git-lfs, docs/api/server-discovery.md). */
const LFS = 'info/lfs';

/** Git LFS shows the message of such an answer, and goes on without locks where they are asked for. */
export const LFS_ROUTES: readonly GitRoute[] = (['GET', 'POST'] as const).map((method) => ({
  method,
  path: LFS,
  service: 'git-upload-pack',
  serviceInQuery: false,
  requirement: granted('GIT_HTTP_READ'),
  contentType: null,
  handle: refuseLfs,
}));

async function refuseLfs(git: GitRequest): Promise<void> {
  const { request, response } = git;
  const body = JSON.stringify({ message: 'Git LFS is not offered here yet: push the files themselves' });
  // The rest of the body is not read, so the connection cannot be used again.
  if (!request.complete) response.setHeader('Connection', 'close');
  writeHead(git, 501, ['Content-Type', 'application/vnd.git-lfs+json']);
  response.end(body);
}

export const GIT_ROUTES: readonly GitRoute[] = [
  advertisement({
    service: 'git-upload-pack',
    requirement: granted('GIT_HTTP_READ'),
    handle: advertiseUploadPack,
  }),
  advertisement({
    service: 'git-receive-pack',
    requirement: granted('GIT_HTTP_WRITE'),
    handle: advertiseReceivePack,
  }),
  exchange({ service: 'git-upload-pack', requirement: granted('GIT_HTTP_READ'), handle: serveUploadPack }),
  exchange({ service: 'git-receive-pack', requirement: granted('GIT_HTTP_WRITE'), handle: serveReceivePack }),
];

/** The past shows what force-pushes and deletions took away, so it is the owner's alone. */
const OWNER: Requirement = { grant: 'ALL', scope: 'ALL_REPO', onItself: false };

/** The same endpoints of a repository as of a moment. */
export const PAST_GIT_ROUTES: readonly GitRoute[] = [
  advertisement({ service: 'git-upload-pack', requirement: OWNER, handle: advertiseUploadPack }),
  advertisement({ service: 'git-receive-pack', requirement: OWNER, handle: refusePush }),
  exchange({ service: 'git-upload-pack', requirement: OWNER, handle: serveUploadPack }),
  exchange({ service: 'git-receive-pack', requirement: OWNER, handle: refusePush }),
];

const QUERIED: ReadonlySet<string> = new Set(
  GIT_ROUTES.filter((route) => route.serviceInQuery).map(({ path }) => path),
);
/** The service of what git sends as the query; another query is parsed, which takes a microsecond or two. */
const PLAIN_QUERIES: ReadonlyMap<string, GitService> = new Map(
  GIT_ROUTES.map(({ service }) => [`service=${service}`, service]),
);
const [NOW, PAST] = [routesByKey(GIT_ROUTES), routesByKey(PAST_GIT_ROUTES)];
const NONE: readonly GitRoute[] = [];

/**
 * Returns whether the target is git's: anything below `/r/`, and the endpoints below the address of a repository's
 * page, which people give to git as a remote.
 */
export function isForGit(target: string): boolean {
  if (isBelowGit(target)) return true;
  const named = parseGitTarget(target);
  return named !== null && (serviceOf(named) !== null || QUERIED.has(named.path) || routesOf(named) !== NONE);
}

/** Returns the service that a target asks for, offered or not; null if it names none. */
export function serviceOf({ path, query }: GitTarget): string | null {
  if (QUERIED.has(path)) return PLAIN_QUERIES.get(query) ?? new URLSearchParams(query).get('service');
  return /^git-[^/]*$/.test(path) ? path : null;
}

/** No path holds a question mark, so `<path>?<service>` never equals a path without a service. */
function routesByKey(routes: readonly GitRoute[]): ReadonlyMap<string, readonly GitRoute[]> {
  return Map.groupBy(routes, ({ path, service, serviceInQuery }) => (serviceInQuery ? keyOf(path, service) : path));
}

/**
 * Returns the routes of a target, for all methods; none for an unknown path. Returns `dumb` for a client without the
 * smart protocol, which Strata does not serve.
 */
export function routesOf(target: GitTarget): readonly GitRoute[] | 'dumb' {
  const { moment, path } = target;
  const routes = moment === null ? NOW : PAST;
  if (moment === null && (path === LFS || path.startsWith(`${LFS}/`))) return LFS_ROUTES;
  if (!QUERIED.has(path)) return routes.get(path) ?? NONE;
  const service = serviceOf(target);
  return service === null ? 'dumb' : (routes.get(keyOf(path, service)) ?? NONE);
}

function keyOf(path: string, service: string): string {
  return `${path}?${service}`;
}
